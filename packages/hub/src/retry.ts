// How this project's own packages try again; it knows neither HTTP nor files and runs anywhere. It is not meant for
// others: names here change without a new major version.

/** Decides what is tried again and when; the mechanism is `retry`. */
export interface RetryPolicy {
  /** Whether another try is worth it; `failures` counts the ones before this error. */
  shouldRetry(error: unknown, failures: number): boolean;
  /** The pause before that try, in milliseconds. */
  delayFor(error: unknown, failures: number): number;
  /** Hears of every failure and of the pause that follows it; null when no further try does. */
  onFailure?(error: unknown, delayMs: number | null, failures: number): void;
}

/** What surrounds tries. */
export interface RetryContext {
  /** Resolves after the pause; rejects when `signal` is aborted, no matter with what. */
  readonly sleep: (durationMs: number) => Promise<unknown>;
  /** Throws its reason once somebody has given up. */
  readonly signal?: { throwIfAborted(): void } | undefined;
}

/**
 * Tries until it succeeds or the policy has had enough. One who gives up meanwhile hears their own
 * reason: it is neither a failure nor worth another try, whatever kind of error the reason is.
 *
 * Nearly all calls succeed at once, by the thousand; the loop, which takes memory, is for the others.
 */
export function retry<T>(
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  surroundings: RetryContext,
): Promise<T> {
  return attempt(0).then(undefined, (error: unknown) =>
    retryAfter(error, attempt, policy, surroundings),
  );
}

/** Goes on where the first try, made by the caller, has failed. */
export async function retryAfter<T>(
  firstError: unknown,
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  { sleep, signal }: RetryContext,
): Promise<T> {
  let error = firstError;
  for (let failures = 0; ; failures++) {
    signal?.throwIfAborted();
    const delayMs = policy.shouldRetry(error, failures) ? policy.delayFor(error, failures) : null;
    policy.onFailure?.(error, delayMs, failures);
    if (delayMs === null) throw error;
    try {
      if (delayMs > 0) await sleep(delayMs);
      return await attempt(failures + 1);
    } catch (next) {
      error = next;
    }
  }
}
