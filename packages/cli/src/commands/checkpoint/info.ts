import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { formatBoolean, formatRelative, formatSize } from "../../output/formats.js";
import { checkpointArguments, parseCheckpointPath } from "../../parse/checkpoint-path.js";
import { checkpointJson } from "../../present/checkpoint-json.js";
import { loraProperty } from "../../present/lora-text.js";

/** `checkpoint info` */
export const command = defineCommand({
  summary: "Show a checkpoint.",
  options: {},
  arguments: checkpointArguments,
  async run(context, { arguments: { path } }) {
    const { runId } = parseCheckpointPath(path);
    const { run, found } = await withService(context, async ({ rest, bounds }) => {
      const { checkpoints } = await rest.listCheckpoints(runId, bounds);
      const checkpoint = checkpoints.find(({ tinkerPath }) => tinkerPath === path);
      if (!checkpoint) {
        throw new CliError(`Checkpoint not found: ${path}`, `Run ${runId} has no such checkpoint.`);
      }
      // The run of a public checkpoint is readable too.
      const scope = { accessScope: "accessible" as const };
      return { found: checkpoint, run: await rest.getTrainingRun(runId, { ...scope, ...bounds }) };
    });
    context.output.result({
      json: () => ({ ...checkpointJson(found), is_lora: run.isLora, lora_rank: run.loraRank }),
      table: () => ({
        title: `Checkpoint: ${found.checkpointId}`,
        headers: ["Property", "Value"],
        rows: [
          ["Checkpoint ID", found.checkpointId],
          ["Type", found.checkpointType],
          ["Tinker Path", found.tinkerPath],
          ...(found.sizeBytes === null ? [] : [["Size", formatSize(found.sizeBytes)]]),
          ["Public", formatBoolean(found.public)],
          ["Created", formatRelative(found.time)],
          ["Expires", found.expiresAt ? formatRelative(found.expiresAt) : "Never"],
          ["Training Run ID", runId],
          ["LoRA", loraProperty(run.isLora, run.loraRank)],
        ],
      }),
    });
  },
});
