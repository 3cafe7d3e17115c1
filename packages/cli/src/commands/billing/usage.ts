import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { BillingUsageEvent, BillingUsageResponse } from "tinker-ts";
import { defineCommand, type CommandContext } from "../../command.js";
import { withService } from "../../connect/with-service.js";
import { CliError } from "../../errors/cli-error.js";
import { cellText, csvText, fieldsOf } from "../../output/csv.js";
import { jsonText } from "../../output/json-text.js";

type Row = Readonly<Record<string, unknown>>;

const sessionFields = ["session_id", "user_metadata"];

/** `billing usage` */
export const command = defineCommand({
  summary: "Show usage by hour, for at most 14 days.",
  options: {
    csv: {
      type: "string",
      placeholder: "PATH",
      description: "Write the rows as CSV; - for stdout",
    },
    sessionsCsv: {
      type: "string",
      placeholder: "PATH",
      description: "Write the sessions and their metadata as CSV; - for stdout",
    },
  },
  arguments: {
    startingOn: { description: "First hour: YYYY-MM-DD, optionally with a time" },
    endingBefore: { description: "End, exclusive" },
  },
  examples: ["billing usage 2026-01-01 2026-01-08 --csv usage.csv"],
  async run(context, { arguments: { startingOn, endingBefore }, options }) {
    const { csv, sessionsCsv } = options;
    if (csv === "-" && sessionsCsv === "-") {
      throw new CliError("--csv and --sessions-csv cannot both go to standard output.");
    }
    const usage = await withService(context, ({ rest, bounds }) =>
      rest.getBillingUsage({ startingOn, endingBefore, ...bounds }),
    );
    if (csv !== undefined) await writeCsv(context, csv, usage.data.map(flatRow));
    if (sessionsCsv !== undefined) {
      await writeCsv(context, sessionsCsv, sessionRows(usage), sessionFields);
    }
    if (csv !== undefined || sessionsCsv !== undefined) return;
    const rows = usage.data.map(flatRow);
    const fields = fieldsOf(rows);
    context.output.result({
      json: () => ({
        data: usage.data.map(nestedRow),
        sessions: Object.fromEntries(
          Object.entries(usage.sessions).map(([id, session]) => [
            id,
            { user_metadata: session.userMetadata },
          ]),
        ),
      }),
      table: () => ({
        title:
          rows.length === 0
            ? "No billing usage in this window"
            : `${rows.length} hourly usage row${rows.length === 1 ? "" : "s"}`,
        headers: fields,
        rows: rows.map((row) => fields.map((field) => cellText(row[field]))),
      }),
    });
  },
});

function envelope(event: BillingUsageEvent): Row {
  return {
    bucket_start: event.bucketStart.toJSON(),
    bucket_end: event.bucketEnd.toJSON(),
    base_model: event.baseModel,
    user_id: event.userId,
    user_name: event.userName,
    session_id: event.sessionId,
    project_id: event.projectId,
  };
}

function payload({ eventInfo }: BillingUsageEvent): Row {
  switch (eventInfo.type) {
    case "training":
    case "sampling_sample":
      return { type: eventInfo.type, token_count: eventInfo.tokenCount };
    case "sampling_prefill":
      return { type: eventInfo.type, cached: eventInfo.cached, token_count: eventInfo.tokenCount };
    case "checkpoint":
      return { type: eventInfo.type, count: eventInfo.count };
    case "storage":
      return { type: eventInfo.type, gigabyte_hours: eventInfo.gigabyteHours };
  }
}

function flatRow(event: BillingUsageEvent): Row {
  return { ...envelope(event), ...payload(event) };
}

function nestedRow(event: BillingUsageEvent): Row {
  return { ...envelope(event), event_info: payload(event) };
}

function sessionRows({ sessions }: BillingUsageResponse): Row[] {
  return Object.entries(sessions).map(([id, { userMetadata }]) => ({
    session_id: id,
    user_metadata: userMetadata && jsonText(userMetadata, 0),
  }));
}

async function writeCsv(
  { terminal, output }: CommandContext,
  target: string,
  rows: readonly Row[],
  fields?: readonly string[],
): Promise<void> {
  const text = csvText(rows, fields);
  if (target === "-") return terminal.out(text);
  await writeFile(path.resolve(terminal.cwd, target), text);
  output.note(`Wrote ${rows.length} row${rows.length === 1 ? "" : "s"} to ${target}`);
}
