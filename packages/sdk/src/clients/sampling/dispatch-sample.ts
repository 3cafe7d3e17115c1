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
  sizeBytes: number,
  encode: () => EncodedBody,
): Promise<UntypedAPIFuture> {
  const { sampleGate, runtime } = session;
  const { clock } = runtime;
  const startedAt = clock.now();
  const permit = await sampleGate.enter(sizeBytes, operation.signal);
  try {
    const enteredAt = clock.now();
    operation.add("waitMs", enteredAt - startedAt);
    // Encoded only now, so that those who wait in line do not hold a body each.
    const body = encode();
    operation.spent("encodeMs", enteredAt);
    const sentAt = clock.now();
    const accepted = await sendUntilAccepted(session, operation, sizeBytes, body);
    operation.spent("submitMs", sentAt);
    return accepted;
  } finally {
    sampleGate.leave(permit);
  }
}

async function sendUntilAccepted(
  session: Session,
  operation: Operation,
  sizeBytes: number,
  body: EncodedBody,
): Promise<UntypedAPIFuture> {
  const { connection, sampleGate } = session;
  const { signal, failedAttempt: onAttempt } = operation;
  const send = async (): Promise<UntypedAPIFuture | undefined> => {
    try {
      const response = await connection.api.exchange("sample", body, { headers, signal });
      return connection.api.read("sample", response);
    } catch (error) {
      if (isLater(error, session)) return undefined;
      throw error;
    }
  };
  for (;;) {
    if (sampleGate.isBackingOff) await sampleGate.waitForBackoff(signal);
    const accepted = await session.retrying("sample", send, { signal, onAttempt });
    if (accepted) return accepted;
    sampleGate.backOff(sizeBytes);
  }
}

/** Whether the server wants the request later. */
function isLater(error: unknown, { connection }: Session): boolean {
  if (!(error instanceof APIStatusError)) return false;
  if (error.status === 429) return true;
  return error.status === 402 && connection.billing.shouldPause(error.message);
}
