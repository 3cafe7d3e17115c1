import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { scopeOptions } from "../../parse/list-options.js";

/** `session info` */
export const command = defineCommand({
  summary: "Show the training runs and samplers of a session.",
  options: { ...scopeOptions },
  arguments: { sessionId: { values: ["sessions"], description: "Id of the session" } },
  async run(context, { arguments: { sessionId }, options: { accessScope } }) {
    const { trainingRunIds, samplerIds } = await withService(context, ({ rest, bounds }) =>
      rest.getSession(sessionId, { accessScope, ...bounds }),
    );
    context.output.result({
      json: () => ({
        session_id: sessionId,
        training_run_ids: trainingRunIds,
        sampler_ids: samplerIds,
      }),
      table: () => ({
        title: `Session: ${sessionId}`,
        headers: ["ID", "Kind"],
        rows: [
          ...trainingRunIds.map((id) => [id, "training run"]),
          ...samplerIds.map((id) => [id, "sampler"]),
        ],
      }),
    });
  },
});
