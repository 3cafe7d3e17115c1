import type { TrainingRun } from "tinker-ts";
import { defineCommand } from "../../command.js";
import { collectPages } from "../../connect/collect-pages.js";
import { withService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { formatRelative } from "../../output/formats.js";
import { listOptions, scopeOptions } from "../../parse/list-options.js";
import { trainingRunJson } from "../../present/checkpoint-json.js";
import { listTitle } from "../../present/list-title.js";
import { loraColumn } from "../../present/lora-text.js";

interface Column {
  readonly header: string;
  readonly value: (run: TrainingRun) => string;
}

const columns: Readonly<Record<string, Column>> = {
  id: { header: "Run ID", value: (run) => run.trainingRunId },
  model: { header: "Base Model", value: (run) => run.baseModel },
  owner: { header: "Owner", value: (run) => run.modelOwner },
  lora: { header: "LoRA", value: (run) => loraColumn(run.isLora, run.loraRank) },
  updated: { header: "Last Update", value: (run) => formatRelative(run.lastRequestTime) },
  status: { header: "Status", value: (run) => (run.corrupted ? "Failed" : "OK") },
  checkpoint: {
    header: "Last Checkpoint",
    value: (run) => run.lastCheckpoint?.checkpointId ?? "None",
  },
  checkpoint_time: {
    header: "Checkpoint Time",
    value: (run) => formatRelative(run.lastCheckpoint?.time),
  },
};

/** `run list` */
export const command = defineCommand({
  summary: "List training runs, newest first.",
  options: {
    ...listOptions,
    ...scopeOptions,
    columns: {
      type: "string",
      short: "c",
      default: "id,model,lora,updated,status",
      description: `Columns of the table, of ${Object.keys(columns).join(", ")}`,
    },
  },
  arguments: {},
  examples: ["run list --limit 5", "run list -c id,model,checkpoint --format json"],
  async run(context, { options }) {
    const chosen = chooseColumns(options.columns);
    const { limit, offset, accessScope } = options;
    const { items, hidden } = await withService(context, ({ rest, bounds }) =>
      collectPages(
        async (size, start) => {
          const page = await rest.listTrainingRuns({
            limit: size,
            offset: start,
            accessScope,
            ...bounds,
          });
          return { items: page.trainingRuns, totalCount: page.cursor?.totalCount };
        },
        { limit, offset, pageSize: 100 },
      ),
    );
    context.output.result({
      json: () => ({ runs: items.map(trainingRunJson) }),
      table: () => ({
        title: listTitle("training run", items.length, { hidden }),
        headers: chosen.map(({ header }) => header),
        rows: items.map((run) => chosen.map(({ value }) => value(run))),
      }),
    });
  },
});

function chooseColumns(text: string): Column[] {
  return text.split(",").map((part) => {
    const name = part.trim();
    const column = Object.hasOwn(columns, name) ? columns[name] : undefined;
    if (column) return column;
    const known = Object.keys(columns).join(", ");
    throw new CliError(`Unknown column: ${JSON.stringify(name)}`, `Available columns: ${known}`);
  });
}
