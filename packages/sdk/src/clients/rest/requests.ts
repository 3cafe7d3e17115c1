import { APIStatusError } from "../../errors/api-error.js";
import { ArgumentError } from "../../errors/argument-error.js";
import { TinkerError } from "../../errors/tinker-error.js";
import { sleep } from "../../runtime/cancellation.js";
import { Timestamp } from "../../schema/timestamp.js";
import type { Connection } from "../../session/connection.js";
import { isJwt } from "../../transport/credentials.js";
import { readClaims } from "../../transport/jwt.js";
import { retryTable, type CallRetries } from "../../transport/retry.js";
import type { WhoamiResponse } from "../../types/runs.js";
import type { CheckpointArchiveUrlResponse } from "../../types/weights.js";
import { logsPath, type LogsAnswer } from "../../wire/log-lines.js";
import type { Route } from "../../wire/routes.js";

/* Requests that take more than one call; loaded with the first of them. */

/** Waits between two lines in the log about an archive. */
const quietWaits = 5;
const defaultLifetimeMs = 15 * 60_000;

/**
 * Asks where a checkpoint's archive is. The server answers with the address, with a redirect to it, or with
 * 503 while it packs the archive; then it is asked again every half minute.
 */
export async function archiveUrl(
  connection: Connection,
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<CheckpointArchiveUrlResponse> {
  const { logger } = connection.runtime;
  const { pauseMs, tries } = retryTable.archive;
  const ownPauseMs: CallRetries["ownPauseMs"] = ({ status }, failures) => {
    if (status !== 503) return undefined;
    if (failures === tries) return null;
    if (failures === 0) logger.info("the server is packing the checkpoint archive; waiting");
    else if (failures % quietWaits === 0) {
      logger.info("the checkpoint archive is still being packed");
    }
    return pauseMs;
  };
  try {
    return await connection.api.call("getCheckpointArchiveUrl", null, {
      params,
      signal,
      followsRedirects: false,
      retries: { host: connection, ownPauseMs },
    });
  } catch (error) {
    const location =
      error instanceof APIStatusError && error.status === 302
        ? error.headers["location"]
        : undefined;
    if (!location || !(error instanceof APIStatusError)) throw error;
    const now = connection.runtime.clock.wallTime();
    const expires = readExpiry(error.headers["expires"]) ?? now + defaultLifetimeMs;
    return { url: location, expires: new Timestamp(expires) };
  }
}

function readExpiry(text: string | undefined): number | undefined {
  const moment = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(moment) ? undefined : moment;
}

const trustedIssuer = "passport-";

/** The owner of the credential, as the credential names it. */
export function identityOf({ parts, plan }: Connection): WhoamiResponse {
  const token = parts.tokens?.token;
  const claims = token === undefined ? ownClaims(plan.credential.key) : readClaims(token);
  const userUrn = claims?.["sub"];
  if (typeof userUrn !== "string") {
    throw new TinkerError(
      "A plain key does not name its owner: the server does not exchange keys for tokens, and the key is not a token itself.",
      { code: "no_identity" },
    );
  }
  const email = claims?.["email"];
  return { userUrn, email: typeof email === "string" && email !== "" ? email : null };
}

function ownClaims(key: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const claims = key !== undefined && isJwt(key) ? readClaims(key) : undefined;
  const issuer = claims?.["iss"];
  return typeof issuer === "string" && issuer.startsWith(trustedIssuer) ? claims : undefined;
}

const askTraceEveryMs = 5_000;

/** Lets the server write a trace of a session and waits for it; resolves to its address. */
export async function exportTrace(
  connection: Connection,
  sessionId: string,
  signal: AbortSignal,
): Promise<string> {
  const { clock, logger } = connection.runtime;
  for (let asks = 0; ; asks++) {
    const options = { params: { sessionId }, signal };
    const { status, url, error } = await connection.call("exportSessionTrace", null, options);
    if (status === "ready" && url !== null) return url;
    if (status !== "pending") {
      throw new TinkerError(
        `The trace of session ${sessionId} could not be written: ${error ?? "the server gave no reason"}`,
        { code: "trace_failed" },
      );
    }
    if (asks === 0) logger.info(`the server is writing the trace of session ${sessionId}; waiting`);
    await sleep(clock, askTraceEveryMs, signal);
  }
}

const hourMs = 3_600_000;
const longestMs = 14 * 24 * hourMs;

/** Checks the hours that usage is asked for and writes them as the server reads them. */
export function billingWindow(window: {
  readonly startingOn: Date | string;
  readonly endingBefore: Date | string;
}): { readonly startingOn: string; readonly endingBefore: string } {
  const start = readHour("startingOn", window.startingOn);
  const end = readHour("endingBefore", window.endingBefore);
  const lengthMs = end.getTime() - start.getTime();
  if (lengthMs <= 0) throw new ArgumentError("endingBefore", "must be after startingOn");
  if (lengthMs > longestMs) {
    throw new ArgumentError("endingBefore", "must be at most 14 days after startingOn");
  }
  return { startingOn: start.text, endingBefore: end.text };
}

function readHour(field: string, value: Date | string): Timestamp {
  const moment = new Timestamp(withTime(value));
  if (Number.isNaN(moment.getTime())) {
    throw new ArgumentError(field, `${String(value)} is not a date or an RFC 3339 time`);
  }
  if (moment.getTime() % hourMs !== 0) {
    throw new ArgumentError(field, `${moment.text} is not a full hour (UTC)`);
  }
  return moment;
}

/** A bare date is its first hour, and a time without an offset is UTC; both are written out. */
function withTime(value: Date | string): Date | string {
  if (value instanceof Date) return value;
  if (/^\d{4}-\d\d-\d\d$/.test(value)) return `${value}T00:00:00Z`;
  return /[zZ]$|[+-]\d\d:?\d\d$/.test(value) ? value : `${value}Z`;
}

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
