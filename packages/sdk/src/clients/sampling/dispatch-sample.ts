import { APIStatusError } from "../../errors/api-error.js";
import type { Operation } from "../../futures/operation.js";
import type { Session } from "../../session/session.js";
import type { EncodedBody } from "../../transport/api.js";
import type { UntypedAPIFuture } from "../../types/futures.js";

const headers = { "x-tinker-sampling-backpressure": "1" };

/**
 * Hands one sample in, within the limits of the session. 429 (and 402 while the billing pause lasts)
 * is the server's way to say "later": the request keeps its number and its place and is sent again
 * when the backoff is over.
 */
export async function dispatchSample(
  session: Session,
  operation: Operation,
  body: EncodedBody,
  sizeBytes: number,
): Promise<UntypedAPIFuture> {
  const { signal } = operation;
  const { connection, sampleGate, runtime } = session;
  const { clock } = runtime;
  const waitStartedAt = clock.now();
  const leave = await sampleGate.enter(sizeBytes, signal);
  operation.spent("waitMs", waitStartedAt);
  const sentAt = clock.now();
  try {
    for (;;) {
      await sampleGate.waitForBackoff(signal);
      const accepted = await session.retrying("sample", send, {
        signal,
        onAttempt: operation.failedAttempt,
      });
      if (accepted) return accepted;
      sampleGate.backOff(sizeBytes);
    }
  } finally {
    operation.spent("submitMs", sentAt);
    leave();
  }

  /** Undefined when the server wants it later. */
  async function send(): Promise<UntypedAPIFuture | undefined> {
    try {
      const response = await connection.api.exchange("sample", body, { headers, signal });
      return connection.api.read("sample", response);
    } catch (error) {
      if (isLater(error)) return undefined;
      throw error;
    }
  }

  function isLater(error: unknown): boolean {
    if (!(error instanceof APIStatusError)) return false;
    if (error.status === 429) return true;
    return error.status === 402 && connection.billing.shouldPause(error.message);
  }
}
