import { stat } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { defineCommand, type CommandContext } from "../../command.js";
import { readAdapterConfig } from "../../connect/adapter-config.js";
import { refusalOf } from "../../connect/refusal.js";
import { withService, type OpenService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { formatSize } from "../../output/formats.js";

const wantedFiles = ["adapter_config.json", "adapter_model.safetensors", "optimizer.safetensors"];

/** `checkpoint import` */
export const command = defineCommand({
  summary: "Brings a PEFT adapter to a server, as a checkpoint of a new run.",
  details: [
    "The adapter is checked against the server's base model. It can then be sampled, trained on",
    "and published like any other. Servers other than this project's cannot take adapters.",
  ],
  options: {
    baseModel: {
      type: "string",
      placeholder: "NAME",
      description: "The server's name of the model; what the adapter names by default",
    },
    name: { type: "string", description: "The checkpoint's name; the folder's by default" },
    type: {
      type: "string",
      choices: ["training", "sampler"],
      default: "training",
      description: "To train on, or only to sample from",
    },
  },
  arguments: { folder: { description: "The folder with adapter_config.json" } },
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
      await upload(context, open, folder, `${training.modelId}/checkpoints/${kind}/${name}`);
      return { runId: training.modelId, path: `tinker://${training.modelId}/${kind}/${name}` };
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
  { fetchPath }: OpenService,
  folder: string,
  target: string,
): Promise<void> {
  const tar = await import("tar");
  const files: string[] = [];
  let totalBytes = 0;
  for (const name of wantedFiles) {
    const found = await stat(path.join(folder, name)).catch(() => undefined);
    if (!found) continue;
    files.push(name);
    totalBytes += found.size;
  }
  const progress = output.progress("Uploading");
  async function* archive(): AsyncGenerator<Uint8Array> {
    let sentBytes = 0;
    for await (const part of tar.c({ cwd: folder, portable: true }, files)) {
      sentBytes += part.length;
      progress.update(sentBytes, totalBytes, formatSize(sentBytes));
      yield part;
    }
  }
  const response = await fetchPath(`/api/v1/training_runs/${target}/archive`, {
    method: "PUT",
    headers: { "content-type": "application/x-tar" },
    body: Readable.toWeb(Readable.from(archive())) as ReadableStream<Uint8Array>,
    // Streams can only be sent while nothing is expected back.
    duplex: "half",
    signal,
  }).finally(() => progress.end());
  if (response.ok) return;
  const reason = await refusalOf(response);
  if (response.status === 404 || response.status === 405) {
    throw new CliError(
      "This server cannot take adapters.",
      "Use a server of this project: 'tinker-ts serve', or --base-url local:.",
    );
  }
  throw new CliError("The server refused the adapter.", reason);
}
