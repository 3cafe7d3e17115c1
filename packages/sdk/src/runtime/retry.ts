import { retryAfter as tryAgain, type RetryPolicy } from "@tinker-ts/hub/retry";
import type { Cancellation } from "./cancellation.js";
import type { Clock } from "./clock.js";
import { sleep } from "./sleep.js";

export type { RetryPolicy };

/** What surrounds tries. */
export interface RetrySurroundings {
  readonly clock: Clock;
  readonly signal?: Cancellation | undefined;
  /** Nobody waits, so pauses must not keep the process alive. */
  readonly isBackground?: boolean;
}

/** Tries until it succeeds or the policy has had enough; pauses are told by the client's clock. */
export function retry<T>(
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  surroundings: RetrySurroundings,
): Promise<T> {
  return attempt(0).then(undefined, (error: unknown) =>
    retryAfter(error, attempt, policy, surroundings),
  );
}

/** Goes on where the first try, made by the caller, has failed. */
export function retryAfter<T>(
  firstError: unknown,
  attempt: (index: number) => Promise<T>,
  policy: RetryPolicy,
  { clock, signal, isBackground }: RetrySurroundings,
): Promise<T> {
  return tryAgain(firstError, attempt, policy, {
    sleep: (durationMs) => sleep(clock, durationMs, signal, isBackground),
    signal,
  });
}
