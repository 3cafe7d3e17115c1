import { TinkerError } from "../../errors/tinker-error.js";
import { sleep } from "../../runtime/sleep.js";
import type { Connection } from "../../session/connection.js";

const askEveryMs = 5_000;

/** Lets the server write a trace of a session and waits for it; resolves to its address. */
export async function exportTrace(
  connection: Connection,
  sessionId: string,
  signal: AbortSignal,
): Promise<string> {
  const { clock, logger } = connection.runtime;
  for (let asks = 0; ; asks++) {
    const { status, url, error } = await connection.retrying(
      "exportSessionTrace",
      () => connection.api.call("exportSessionTrace", null, { params: { sessionId }, signal }),
      { signal },
    );
    if (status === "ready" && url !== null) return url;
    if (status !== "pending") {
      throw new TinkerError(
        `The trace of session ${sessionId} could not be written: ${error ?? "the server gave no reason"}`,
        { code: "trace_failed" },
      );
    }
    if (asks === 0) logger.info(`the server is writing the trace of session ${sessionId}; waiting`);
    await sleep(clock, askEveryMs, signal);
  }
}
