import type { Checkpoint } from "tinker-ts";
import { defineCommand } from "../../command.js";
import { collectPages } from "../../connect/collect-pages.js";
import { withService } from "../../connect/with-service.js";
import { formatBoolean, formatRelative, formatSize } from "../../output/formats.js";
import type { Table } from "../../output/table.js";
import { listOptions } from "../../parse/list-options.js";
import { checkpointJson } from "../../present/checkpoint-json.js";
import { listTitle } from "../../present/list-title.js";

/** `checkpoint list` */
export const command = defineCommand({
  summary: "List your checkpoints, newest first, or those of a run.",
  options: {
    ...listOptions,
    runId: {
      type: "string",
      placeholder: "RUN_ID",
      values: ["runs"],
      description: "All checkpoints of this run",
    },
    wide: { type: "flag", description: "Show whole paths on a screen too" },
  },
  arguments: {},
  examples: ["checkpoint list --limit 0", "checkpoint list --run-id RUN_ID --format json"],
  async run(context, { options: { runId, limit, offset, wide } }) {
    const { items, hidden } = await withService(context, async ({ rest, bounds }) => {
      if (runId !== undefined) {
        return { items: (await rest.listCheckpoints(runId, bounds)).checkpoints, hidden: 0 };
      }
      return collectPages(
        async (size, start) => {
          const page = await rest.listUserCheckpoints({ limit: size, offset: start, ...bounds });
          return { items: page.checkpoints, totalCount: page.cursor?.totalCount };
        },
        { limit, offset, pageSize: 1000 },
      );
    });
    context.output.result({
      json: () => ({
        ...(runId === undefined ? {} : { run_id: runId }),
        checkpoints: items.map(checkpointJson),
      }),
      table: () => {
        const title = listTitle("checkpoint", items.length, {
          hidden,
          where: runId === undefined ? "" : ` for run ${runId}`,
        });
        // A path is wider than most screens, but a pipe needs all of it.
        const isNarrow = context.terminal.columns !== undefined && !wide;
        return { title, ...(isNarrow ? narrowTable(items) : wideTable(items)) };
      },
    });
  },
});

function narrowTable(items: readonly Checkpoint[]): Omit<Table, "title"> {
  return {
    headers: ["Name", "Run", "Kind", "Size", "Age"],
    rows: items.map((item) => [
      item.checkpointId.split("/").slice(1).join("/") || item.checkpointId,
      shortRunId(runOf(item.tinkerPath)),
      item.checkpointType,
      formatSize(item.sizeBytes),
      formatRelative(item.time),
    ]),
  };
}

function wideTable(items: readonly Checkpoint[]): Omit<Table, "title"> {
  return {
    headers: ["Checkpoint ID", "Type", "Size", "Public", "Created", "Expires", "Path"],
    rows: items.map((item) => [
      item.checkpointId,
      item.checkpointType,
      formatSize(item.sizeBytes),
      formatBoolean(item.public),
      formatRelative(item.time),
      item.expiresAt ? formatRelative(item.expiresAt) : "Never",
      item.tinkerPath,
    ]),
  };
}

function runOf(tinkerPath: string): string {
  return tinkerPath.replace(/^tinker:\/\//, "").split("/")[0] ?? "";
}

/** The beginning of a run's random part and its number, which identify a run among others. */
function shortRunId(runId: string): string {
  const [random = "", ...rest] = runId.split(":");
  return [random.slice(0, 8), ...rest].join(":");
}
