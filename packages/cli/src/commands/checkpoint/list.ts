import { defineCommand } from "../../command.js";
import { collectPages } from "../../connect/collect-pages.js";
import { withService } from "../../connect/with-service.js";
import { formatBoolean, formatRelative, formatSize } from "../../output/formats.js";
import { listOptions } from "../../parse/list-options.js";
import { checkpointJson } from "../../present/checkpoint-json.js";
import { listTitle } from "../../present/list-title.js";

/** `checkpoint list` */
export const command = defineCommand({
  summary: "Lists your checkpoints, newest first, or those of one run.",
  options: {
    ...listOptions,
    runId: {
      type: "string",
      placeholder: "RUN_ID",
      description: "Only those of this run, all of them",
    },
  },
  arguments: {},
  examples: ["checkpoint list --limit 0", "checkpoint list --run-id RUN_ID --format json"],
  async run(context, { options: { runId, limit, offset } }) {
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
      table: () => ({
        title: listTitle("checkpoint", items.length, {
          hidden,
          where: runId === undefined ? "" : ` for run ${runId}`,
        }),
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
      }),
    });
  },
});
