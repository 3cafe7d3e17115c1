// Retries of this repository's packages; independent of HTTP and files, and usable anywhere. This module is not meant for
// others: names here change without a new major version.

/** Decides which errors are retried and when. */
export interface RetryPolicy {
  /** Whether to retry; `failures` counts the ones before this error. */
  shouldRetry(error: unknown, failures: number): boolean;
  /** The pause before the retry, in milliseconds. */
  delayFor(error: unknown, failures: number): number;
  /** Called on every failure with the pause that follows; null if the error is not retried. */
  onFailure?(error: unknown, delayMs: number | null, failures: number): void;
}

/** Sleep and cancellation of retries. */
export interface RetryContext {
  /** Resolves after the pause; rejects when `signal` is aborted, with any reason. */
  readonly sleep: (durationMs: number) => Promise<unknown>;
  /** Throws its reason once the call is aborted. */
  readonly signal?: { throwIfAborted(): void } | undefined;
}

/**
 * Runs an attempt and retries it until it succeeds or the policy ends the retries. An aborted call rejects
 * with its abort reason, which is never retried, whatever kind of error it is.
 *
 * Nearly all calls succeed at once; the loop, which takes memory, runs only after a failure.
 */
export function retry<T>(
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  context: RetryContext,
): Promise<T> {
  return attempt(0).then(undefined, (error: unknown) =>
    retryAfter(error, attempt, policy, context),
  );
}

/** Retries after the caller's first attempt has failed. */
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
