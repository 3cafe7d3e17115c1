import { APIStatusError } from "../../errors/api-error.js";
import { retry, type RetryPolicy } from "../../runtime/retry.js";
import { Timestamp } from "../../schema/timestamp.js";
import type { Connection } from "../../session/connection.js";
import type { CheckpointArchiveUrlResponse } from "../../types/weights.js";

const maxAsks = 6;
const askEveryMs = 30_000;
const quietWaits = 5;
const defaultLifetimeMs = 15 * 60_000;

/**
 * Asks where a checkpoint's archive is. The server answers with the address, redirects to it, or says
 * 503 while it packs the archive; then it is asked again every half minute, a few times.
 */
export async function archiveUrl(
  connection: Connection,
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<CheckpointArchiveUrlResponse> {
  const { clock, logger } = connection.runtime;
  const packing: RetryPolicy = {
    shouldRetry: (error, failures) =>
      error instanceof APIStatusError && error.status === 503 && failures + 1 < maxAsks,
    delayFor: () => askEveryMs,
    onFailure: (_, delayMs, failures) => {
      if (delayMs === null) return;
      if (failures === 0) logger.info("the server is packing the checkpoint archive; waiting");
      else if (failures >= quietWaits) logger.info("the checkpoint archive is still being packed");
    },
  };
  return connection.retrying(
    "getCheckpointArchiveUrl",
    () => retry(() => askOnce(connection, params, signal), packing, { clock, signal }),
    { signal },
  );
}

async function askOnce(
  connection: Connection,
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<CheckpointArchiveUrlResponse> {
  try {
    return await connection.api.call("getCheckpointArchiveUrl", null, {
      params,
      signal,
      followsRedirects: false,
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
