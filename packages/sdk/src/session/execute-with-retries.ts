import { APIError, APIStatusError, toAttempt, type Attempt } from "../errors/api-error.js";
import { isUserError } from "../errors/tinker-error.js";
import type { Cancellation } from "../runtime/cancellation.js";
import { retry, type RetryPolicy } from "../runtime/retry.js";
import type { Runtime } from "../runtime/runtime.js";
import type { TelemetrySink } from "../telemetry/sink.js";
import { billingPauseMs, type BillingPause } from "./billing-pause.js";

const windowMs = 300_000;
const longestWaitMs = 30_000;

/** Who makes calls in the retry loop. */
export interface RetryHost {
  readonly runtime: Runtime;
  readonly telemetry: TelemetrySink;
  readonly billing: BillingPause;
}

/** Keeps the attempts that failed. */
export interface AttemptKeeper {
  failedAttempt(attempt: Attempt): void;
}

/** How a call inside the retry loop is made. */
export interface RetryOptions {
  readonly signal?: Cancellation | undefined;
  /** Replaces the usual judgement of what may succeed later. */
  readonly isRetryable?: (error: APIError) => boolean;
  /** What the caller sees to itself, 402 included. */
  readonly leaves?: (error: APIError) => boolean;
  /** Hears of every attempt that failed. */
  readonly keeper?: AttemptKeeper;
}

/**
 * Tries a call for up to five minutes: lost connections, 408, 409, 429 and 5xx are waited out with
 * growing pauses. 402 is waited out as long as the billing pause lasts, and that time does not count. The
 * error that remains carries every attempt.
 */
export function executeWithRetries<T>(
  action: () => Promise<T>,
  host: RetryHost,
  endpoint: string,
  options: RetryOptions,
): Promise<T> {
  const { clock } = host.runtime;
  const { signal } = options;
  return retry(action, new CallRetryPolicy(host, endpoint, options), { clock, signal });
}

class CallRetryPolicy implements RetryPolicy {
  readonly #host: RetryHost;
  readonly #endpoint: string;
  readonly #options: RetryOptions;
  readonly #startedAt: number;
  #attempts: Attempt[] | undefined;
  #retries = 0;
  #pausedMs = 0;
  #isBillingPause = false;

  constructor(host: RetryHost, endpoint: string, options: RetryOptions) {
    this.#host = host;
    this.#endpoint = endpoint;
    this.#options = options;
    this.#startedAt = host.runtime.clock.now();
  }

  shouldRetry(error: unknown): boolean {
    if (!(error instanceof APIError)) return false;
    const { leaves, isRetryable = maySucceedLater } = this.#options;
    if (leaves?.(error)) return false;
    this.#isBillingPause =
      isPaymentRequired(error) && this.#host.billing.shouldPause(error.message);
    return this.#isBillingPause || (isRetryable(error) && this.#leftMs > 0);
  }

  delayFor(): number {
    if (this.#isBillingPause) {
      this.#pausedMs += billingPauseMs;
      return billingPauseMs;
    }
    return Math.min(1000 * 2 ** this.#retries++, longestWaitMs, this.#leftMs);
  }

  onFailure(error: unknown, delayMs: number | null): void {
    if (!(error instanceof APIError)) return;
    const { keeper, leaves } = this.#options;
    if (leaves?.(error)) return;
    if (!this.#isBillingPause) this.#tellTelemetry(error, delayMs !== null);
    const made = attemptsOf(error, delayMs);
    this.#attempts = [...(this.#attempts ?? []), ...made];
    if (delayMs === null) {
      error.attempts = this.#attempts;
      return;
    }
    for (const failed of made) keeper?.failedAttempt(failed);
    const { status, message } = toAttempt(error, delayMs);
    this.#host.runtime.retries.report({
      endpoint: this.#endpoint,
      by: "call",
      status,
      message,
      delayMs,
    });
  }

  get #elapsedMs(): number {
    return this.#host.runtime.clock.now() - this.#startedAt;
  }

  get #leftMs(): number {
    return windowMs + this.#pausedMs - this.#elapsedMs;
  }

  #tellTelemetry(error: APIError, isRetried: boolean): void {
    const { runtime, telemetry } = this.#host;
    const isUser = isUserError(error);
    const now = runtime.clock.wallTime();
    telemetry.log(
      "InternalClientHolder.execute_with_retries.exception",
      isRetried || isUser ? "WARNING" : "ERROR",
      {
        func: this.#endpoint,
        exception: error.message,
        exception_type: error.name,
        exception_stack: error.stack ?? null,
        status_code: error instanceof APIStatusError ? error.status : null,
        is_retryable: isRetried,
        is_user_error: isUser,
        attempt_count: isRetried ? this.#retries - 1 : this.#retries,
        start_time: (now - this.#elapsedMs) / 1000,
        current_time: now / 1000,
        elapsed_time: this.#elapsedMs / 1000,
      },
    );
  }
}

function isPaymentRequired(error: APIError): boolean {
  return error instanceof APIStatusError && error.status === 402;
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
