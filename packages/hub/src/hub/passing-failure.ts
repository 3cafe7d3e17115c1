import { setTimeout as sleep } from "node:timers/promises";
import { retry } from "../retry.js";

/** A failure that may pass: the connection, or a server that is busy. */
export class PassingFailure extends Error {
  override readonly name = "PassingFailure";
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

/** How often and how patiently passing failures are retried. */
export interface RetryPolicy {
  /** Attempts in a row without any progress before giving up. */
  readonly maxAttempts: number;
  /** Wait after the first failure; it doubles with each further one. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/**
 * Tries again while it fails in passing. `madeProgress` tells whether the last attempt got anywhere; if
 * so, the count starts again, so that a long download survives many small faults.
 */
export async function retryPassing<T>(
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
        return error instanceof PassingFailure && inARow < limits.maxAttempts;
      },
      delayFor: (error) => (error as PassingFailure).retryAfterMs ?? backoffMs(limits, inARow),
    },
    { sleep: (delayMs) => sleep(delayMs, undefined, signal ? { signal } : {}), signal },
  );
}

function backoffMs(policy: RetryPolicy, failures: number): number {
  const delayMs = Math.min(policy.firstDelayMs * 2 ** (failures - 1), policy.maxDelayMs);
  // Half of it is chance, so that many clients of one busy server do not return in step.
  return delayMs * (0.5 + Math.random() / 2);
}
