import { APIError, APIStatusError, toAttempt, type Attempt } from "../errors/api-error.js";
import { isUserError } from "../errors/tinker-error.js";
import type { Cancellation } from "../runtime/cancellation.js";
import type { Runtime } from "../runtime/runtime.js";
import { sleep } from "../runtime/sleep.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import { billingPauseMs, type BillingPause } from "./billing-pause.js";

const windowMs = 300_000;
const longestWaitMs = 30_000;

/** What the retry loop around a call needs to know. */
export interface RetryContext {
  readonly runtime: Runtime;
  readonly telemetry: TelemetrySink;
  readonly billing: BillingPause;
  /** The endpoint, for logs and events. */
  readonly endpoint: string;
  readonly signal?: Cancellation | undefined;
  /** Replaces the usual judgement of what may succeed later. */
  readonly isRetryable?: (error: APIError) => boolean;
  /** Hears of every attempt that failed. */
  readonly onAttempt?: ((attempt: Attempt) => void) | undefined;
}

/**
 * Tries a call for up to five minutes: lost connections, 408, 409, 429 and 5xx are waited out with
 * growing pauses; 402 is waited out as long as the billing pause lasts. The error that remains
 * carries every attempt.
 *
 * Nearly all calls succeed at once, by the thousand; the loop, which takes memory, is for the others.
 */
export function executeWithRetries<T>(action: () => Promise<T>, context: RetryContext): Promise<T> {
  const startedAt = context.runtime.clock.now();
  return action().catch((error: unknown) =>
    executeAgain(action, context, startedAt, () => Promise.reject(error)),
  );
}

async function executeAgain<T>(
  action: () => Promise<T>,
  context: RetryContext,
  startedAt: number,
  first: () => Promise<T>,
): Promise<T> {
  const { runtime, billing, endpoint, signal } = context;
  const { clock, retries } = runtime;
  const attempts: Attempt[] = [];
  let attempt = first;
  for (let count = 0; ; attempt = action) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof APIError)) throw error;
      const elapsedMs = clock.now() - startedAt;
      const isBillingPause =
        error instanceof APIStatusError &&
        error.status === 402 &&
        elapsedMs < windowMs &&
        billing.shouldPause(error.message);
      const isRetryable = isBillingPause || (context.isRetryable ?? maySucceedLater)(error);
      if (!isBillingPause) report(error, isRetryable, count, startedAt, context);
      if (!isRetryable || elapsedMs >= windowMs) {
        error.attempts = [...attempts, ...attemptsOf(error, null)];
        throw error;
      }
      const delayMs = isBillingPause
        ? billingPauseMs
        : Math.min(1000 * 2 ** count, longestWaitMs, windowMs - elapsedMs);
      const made = attemptsOf(error, delayMs);
      attempts.push(...made);
      for (const failed of made) context.onAttempt?.(failed);
      const { status, message } = toAttempt(error, delayMs);
      retries.report({ endpoint, by: "call", status, message, delayMs });
      await sleep(clock, delayMs, signal);
      if (!isBillingPause) count++;
    }
  }
}

/** The usual judgement; a server that says "do not retry" is believed. */
function maySucceedLater(error: APIError): boolean {
  if (error instanceof APIStatusError && error.headers["x-should-retry"] === "false") return false;
  return error.isRetryable;
}

/** The attempts inside one failed call, the last of them followed by `delayMs` of waiting. */
function attemptsOf(error: APIError, delayMs: number | null): Attempt[] {
  const last = error.attempts.at(-1) ?? toAttempt(error, null);
  return [...error.attempts.slice(0, -1), { ...last, delayMs }];
}

function report(
  error: APIError,
  isRetryable: boolean,
  attemptCount: number,
  startedAt: number,
  { runtime: { clock }, telemetry, endpoint }: RetryContext,
): void {
  const isUser = isUserError(error);
  const elapsedMs = clock.now() - startedAt;
  telemetry.log(
    "InternalClientHolder.execute_with_retries.exception",
    isRetryable || isUser ? "WARNING" : "ERROR",
    {
      func: endpoint,
      exception: error.message,
      exception_type: error.name,
      exception_stack: error.stack ?? null,
      status_code: error instanceof APIStatusError ? error.status : null,
      is_retryable: isRetryable,
      is_user_error: isUser,
      attempt_count: attemptCount,
      start_time: (clock.wallTime() - elapsedMs) / 1000,
      current_time: clock.wallTime() / 1000,
      elapsed_time: elapsedMs / 1000,
    },
  );
}
