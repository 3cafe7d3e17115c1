import { defineCommand } from "../command.js";
import { withService } from "../connect/with-service.js";
import { listTitle } from "../present/list-title.js";

/** `models` */
export const command = defineCommand({
  summary: "List the models that the server trains and samples.",
  options: {},
  arguments: {},
  async run(context) {
    const { supportedModels } = await withService(context, ({ service, bounds }) =>
      service.getServerCapabilities(bounds),
    );
    context.output.result({
      json: () => ({
        supported_models: supportedModels.map(({ modelName, maxContextLength }) => ({
          model_name: modelName,
          max_context_length: maxContextLength,
        })),
      }),
      table: () => ({
        title: listTitle("model", supportedModels.length),
        headers: ["Model", "Context"],
        rows: supportedModels.map(({ modelName, maxContextLength }) => [
          modelName ?? "N/A",
          maxContextLength === null ? "N/A" : String(maxContextLength),
        ]),
      }),
    });
  },
});
