import type { Checkpoint, TrainingRun } from "tinker-ts";
import { defineCommand } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { formatRelative } from "../../output/formats.js";
import { scopeOptions } from "../../parse/list-options.js";
import { trainingRunJson } from "../../present/checkpoint-json.js";
import { loraProperty } from "../../present/lora-text.js";

/** `run info` */
export const command = defineCommand({
  summary: "Show a training run.",
  options: { ...scopeOptions },
  arguments: {
    runId: { values: ["runs"], description: "Id of the run ('run list' shows them)" },
  },
  async run(context, { arguments: { runId }, options: { accessScope } }) {
    const run = await withService(context, ({ rest, bounds }) =>
      rest.getTrainingRun(runId, { accessScope, ...bounds }),
    );
    context.output.result({
      json: () => trainingRunJson(run),
      table: () => ({
        title: `Training Run: ${run.trainingRunId}`,
        headers: ["Property", "Value"],
        rows: properties(run),
      }),
    });
  },
});

function properties(run: TrainingRun): string[][] {
  return [
    ["Run ID", run.trainingRunId],
    ["Base Model", run.baseModel],
    ["Owner", run.modelOwner],
    ["LoRA", loraProperty(run.isLora, run.loraRank)],
    ["Last Update", formatRelative(run.lastRequestTime)],
    ["Status", run.corrupted ? "Failed" : "OK"],
    ...checkpointRows("Last Training Checkpoint", run.lastCheckpoint),
    ...checkpointRows("Last Sampler Checkpoint", run.lastSamplerCheckpoint),
    ...Object.entries(run.userMetadata ?? {}).map(([key, value]) => [`Metadata: ${key}`, value]),
  ];
}

function checkpointRows(label: string, checkpoint: Checkpoint | null): string[][] {
  if (!checkpoint) return [[label, "None"]];
  return [
    [label, checkpoint.checkpointId],
    ["  - Time", formatRelative(checkpoint.time)],
    ["  - Path", checkpoint.tinkerPath],
  ];
}
