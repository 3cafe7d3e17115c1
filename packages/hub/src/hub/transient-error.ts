import { setTimeout as sleep } from "node:timers/promises";
import { retry } from "../retry.js";

/** A failure that a retry may fix: the connection, or a busy server. */
export class TransientError extends Error {
  override readonly name = "TransientError";
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | null;
  /** Whether the server answered at all. */
  readonly wasReached: boolean;

  constructor(
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | null; wasReached?: boolean } = {},
  ) {
    super(message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.wasReached = options.wasReached ?? false;
  }
}

/** Number and pauses of retries. */
export interface RetryPolicy {
  /** Maximum number of attempts in a row without progress. */
  readonly maxAttempts: number;
  /** Wait after the first failure; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/**
 * Retries transient errors. If `madeProgress` is true for the last attempt,
 * the count starts again, so that a long download survives many small failures.
 */
export async function retryTransient<T>(
  attempt: () => Promise<T>,
  limits: RetryPolicy,
  options: { signal?: AbortSignal | undefined; madeProgress?: () => boolean } = {},
): Promise<T> {
  const { signal, madeProgress } = options;
  let inARow = 0;
  signal?.throwIfAborted();
  return retry(
    attempt,
    {
      shouldRetry(error) {
        inARow = madeProgress?.() ? 1 : inARow + 1;
        return error instanceof TransientError && inARow < limits.maxAttempts;
      },
      delayFor: (error) => (error as TransientError).retryAfterMs ?? backoffMs(limits, inARow),
    },
    { sleep: (delayMs) => sleep(delayMs, undefined, signal ? { signal } : {}), signal },
  );
}

function backoffMs(policy: RetryPolicy, failures: number): number {
  const delayMs = Math.min(policy.firstDelayMs * 2 ** (failures - 1), policy.maxDelayMs);
  // Half of it is random, so that clients of a busy server do not retry in step.
  return delayMs * (0.5 + Math.random() / 2);
}
