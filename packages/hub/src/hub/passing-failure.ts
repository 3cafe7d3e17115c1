import { setTimeout as sleep } from "node:timers/promises";

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
 * Repeats `attempt` while it fails in passing. `madeProgress` tells whether the last attempt got
 * anywhere; if so, the count starts again, so that a long download survives many small faults.
 */
export async function retry<T>(
  policy: RetryPolicy,
  attempt: () => Promise<T>,
  options: { signal?: AbortSignal | undefined; madeProgress?: () => boolean } = {},
): Promise<T> {
  for (let failures = 0; ;) {
    options.signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!(error instanceof PassingFailure)) throw error;
      failures = options.madeProgress?.() ? 1 : failures + 1;
      if (failures >= policy.maxAttempts) throw error;
      await pause(error.retryAfterMs ?? backoffMs(policy, failures), options.signal);
    }
  }
}

function backoffMs(policy: RetryPolicy, failures: number): number {
  const delayMs = Math.min(policy.firstDelayMs * 2 ** (failures - 1), policy.maxDelayMs);
  // Half of it is chance, so that many clients of one busy server do not return in step.
  return delayMs * (0.5 + Math.random() / 2);
}

async function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(delayMs, undefined, signal ? { signal } : {});
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
