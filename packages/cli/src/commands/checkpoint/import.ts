import path from "node:path";
import { defineCommand, type CommandContext } from "../../command.js";
import { readAdapterConfig } from "../../connect/adapter-config.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { describeError } from "../../output/describe-error.js";
import { formatSize } from "../../output/formats.js";

/** `checkpoint import` */
export const command = defineCommand({
  summary: "Import a PEFT adapter into a server, as a checkpoint of a new run.",
  details: [
    "The adapter is checked against the server's base model. It can then be sampled, trained on",
    "and published like any other. Servers other than this project's cannot take adapters.",
    "It also brings back what a server has put into the lost-and-found of its data directory.",
  ],
  options: {
    baseModel: {
      type: "string",
      placeholder: "NAME",
      values: ["models"],
      description: "Name of the base model on the server; by default the adapter's",
    },
    name: { type: "string", description: "Name of the checkpoint; by default the folder's" },
    type: {
      type: "string",
      choices: ["training", "sampler"],
      default: "training",
      description: "For training, or for sampling only",
    },
  },
  arguments: { folder: { description: "Folder with adapter_config.json" } },
  examples: ["checkpoint import ./my-adapter --base-model tinker-ts/sprout"],
  async run(context, { arguments: { folder: given }, options }) {
    const folder = path.resolve(context.terminal.cwd, given);
    const { rank, base } = await readAdapterConfig(folder);
    const baseModel = options.baseModel ?? base;
    if (baseModel === undefined) {
      throw new CliError("The adapter does not name its base model.", "Pass --base-model NAME.");
    }
    const name = options.name ?? path.basename(folder).replace(/[^\w.-]+/g, "-");
    const kind = options.type === "training" ? "weights" : "sampler_weights";
    const result = await withService(context, async (open) => {
      const training = await open.service.createLoraTrainingClient({
        baseModel,
        rank,
        userMetadata: { imported_from: path.basename(folder) },
        ...open.bounds,
      });
      const target = `tinker://${training.modelId}/${kind}/${name}`;
      await upload(context, open, folder, target);
      return { runId: training.modelId, path: target };
    });
    context.output.result({
      json: () => ({
        tinker_path: result.path,
        training_run_id: result.runId,
        base_model: baseModel,
        lora_rank: rank,
      }),
      table: () => ({
        title: `Checkpoint Import: ${folder}`,
        headers: ["Property", "Value"],
        rows: [
          ["Tinker Path", result.path],
          ["Training Run ID", result.runId],
          ["Base Model", baseModel],
          ["LoRA", `Yes (Rank ${rank})`],
        ],
      }),
    });
  },
});

async function upload(
  { output, signal }: CommandContext,
  { rest }: OpenService,
  folder: string,
  target: string,
): Promise<void> {
  const progress = output.progress("Uploading");
  try {
    await rest.uploadCheckpoint(target, {
      directory: folder,
      signal,
      onProgress: ({ sentBytes, totalBytes }) =>
        progress.update(sentBytes, totalBytes, formatSize(sentBytes)),
    });
  } catch (cause) {
    const { code } = cause as { readonly code?: string };
    if (code === "http_400" || code === "http_409") {
      throw new CliError("The server refused the adapter.", describeError(cause).detail, { cause });
    }
    if (code !== "http_404" && code !== "http_405") throw cause;
    throw new CliError(
      "This server cannot take adapters.",
      "Use a server of this project: 'tinker-ts serve', or --base-url local:.",
      { cause },
    );
  } finally {
    progress.end();
  }
}
