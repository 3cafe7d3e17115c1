import type { Connection } from "../../session/connection.js";
import { logsPath, type LogsAnswer } from "../../wire/log-lines.js";
import type { Route } from "../../wire/routes.js";

/** An addition of this project: lines of a run's log. */
const logsRoute: Route = {
  method: "POST",
  path: logsPath,
  request: null,
  response: null,
  pool: "telemetry",
  retry: "outer",
  timeoutMs: 30_000,
};

/** Sends lines of a run's log, once. */
export async function postLogs(
  connection: Connection,
  lines: string,
  signal: AbortSignal,
): Promise<LogsAnswer> {
  const body = {
    content: new TextEncoder().encode(lines),
    headers: { "content-type": "application/x-ndjson" },
  };
  const options = { signal, maxRetries: 0, isBackground: true };
  const response = await connection.api.exchangeAt(logsRoute, "postLogs", body, options);
  return JSON.parse(new TextDecoder().decode(response.body)) as LogsAnswer;
}
