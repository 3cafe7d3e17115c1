import { APIStatusError, toAttempt, type APIError } from "../../errors/api-error.js";
import type { Operation } from "../../futures/operation.js";
import { retry, type RetryPolicy } from "../../runtime/retry.js";
import type { EncodedBody } from "../../transport/api.js";
import { askedDelayMs } from "../../transport/retry-policy.js";
import type { SamplingHost } from "./sampling-host.js";

/** Refusals in a row that are nothing to speak of. */
const patientFailures = 3;

/** A sample that is handed in, and how. */
export interface Dispatch<T> {
  readonly sizeBytes: number;
  readonly encode: () => EncodedBody;
  /** Sends the body; a single attempt. */
  readonly send: (body: EncodedBody) => Promise<T>;
}

/**
 * Hands one sample in, within the limits of its host. 429 (and 402 while the billing pause lasts) is
 * the server's way to say "later": the request keeps its number and its place and is sent again when
 * the backoff is over.
 */
export async function dispatchSample<T>(
  host: SamplingHost,
  operation: Operation,
  { sizeBytes, encode, send }: Dispatch<T>,
): Promise<T> {
  const { sampleGate, runtime } = host;
  const { clock } = runtime;
  const { signal } = operation;
  const startedAt = clock.now();
  const permit = await sampleGate.enter(sizeBytes, signal);
  try {
    const enteredAt = clock.now();
    operation.add("waitMs", enteredAt - startedAt);
    // Encoded only now, so that those who wait in line do not hold a body each.
    const body = encode();
    const sentAt = clock.now();
    operation.add("encodeMs", sentAt - enteredAt);
    const sendOnce = (): Promise<T> => send(body);
    const submit = (): Promise<T> =>
      host.retrying("sample", sendOnce, { signal, keeper: operation, leaves: isLater });
    const attempt = (): Promise<T> =>
      sampleGate.isBackingOff ? sampleGate.waitForBackoff(signal).then(submit) : submit();
    const policy = new LaterPolicy(host, operation, sizeBytes);
    const accepted = await retry(attempt, policy, { clock, signal });
    operation.spent("submitMs", sentAt);
    return accepted;
  } finally {
    sampleGate.leave(permit);
  }
}

/** Holds everybody back for a while and tells why; the waiting itself is done at the gate. */
class LaterPolicy implements RetryPolicy {
  readonly #host: SamplingHost;
  readonly #operation: Operation;
  readonly #sizeBytes: number;

  constructor(host: SamplingHost, operation: Operation, sizeBytes: number) {
    this.#host = host;
    this.#operation = operation;
    this.#sizeBytes = sizeBytes;
  }

  shouldRetry(error: unknown): boolean {
    if (!(error instanceof APIStatusError)) return false;
    if (error.status === 429) return true;
    return error.status === 402 && this.#host.connection.billing.shouldPause(error.message);
  }

  delayFor(): number {
    return 0;
  }

  onFailure(error: unknown, delayMs: number | null, failures: number): void {
    if (delayMs === null || !(error instanceof APIStatusError)) return;
    const { sampleGate, runtime } = this.#host;
    const askedMs = askedDelayMs(error.headers, runtime.clock.wallTime());
    const pauseMs = sampleGate.backOff(this.#sizeBytes, askedMs);
    const { status, message } = error;
    this.#operation.failedAttempt(toAttempt(error, pauseMs));
    this.#operation.heldBack(message);
    const report = { endpoint: "sample", by: "sample", status, message, delayMs: pauseMs } as const;
    runtime.retries.report(report, { isRepeated: failures >= patientFailures });
  }
}

/** Not for the retry loop: the policy above sees to it. */
function isLater(error: APIError): boolean {
  return error instanceof APIStatusError && (error.status === 429 || error.status === 402);
}
