import {
  APIConnectionError,
  APIError,
  APIStatusError,
  toAttempt,
  type Attempt,
} from "../errors/api-error.js";
import { retryAfter, type RetryPolicy } from "../runtime/retry.js";
import type { Runtime } from "../runtime/runtime.js";
import { isSuccess, type HttpRequest, type HttpResponse, type Send } from "./message.js";
import { toStatusError } from "./response-error.js";
import { retryDelayMs, shouldRetry } from "./retry-policy.js";

/** How one HTTP call is tried again. */
export interface HttpRetryOptions {
  readonly maxRetries: number;
  readonly retriesConflicts: boolean;
  /** The endpoint, for reports. */
  readonly endpoint: string;
  readonly runtime: Runtime;
}

/**
 * Tries one HTTP call again when no answer arrives or the answer asks for it. The idempotency key
 * stays the same over all attempts; a header counts them. What is left at the end is the answer, or
 * the error with every attempt that was made.
 */
export function sendWithRetries(
  send: Send,
  request: HttpRequest,
  options: HttpRetryOptions,
): Promise<HttpResponse> {
  const { signal, isBackground } = request;
  const attempt = (index: number): Promise<HttpResponse> =>
    send({ ...request, retryCount: index }).then((response) => {
      if (isSuccess(response)) return response;
      throw toStatusError(response, request);
    });
  const again = (error: unknown): Promise<HttpResponse> => {
    const policy = new HttpRetryPolicy(options, isBackground);
    const { clock } = options.runtime;
    return retryAfter(error, attempt, policy, { clock, signal, isBackground });
  };
  // The first try by itself: nearly all need no other.
  return send(request).then(
    (response) => (isSuccess(response) ? response : again(toStatusError(response, request))),
    again,
  );
}

/** Lost connections, and what the server asks to be tried again; a limited number of times. */
class HttpRetryPolicy implements RetryPolicy {
  readonly #options: HttpRetryOptions;
  readonly #isBackground: boolean;
  #attempts: Attempt[] | undefined;

  constructor(options: HttpRetryOptions, isBackground: boolean) {
    this.#options = options;
    this.#isBackground = isBackground;
  }

  shouldRetry(error: unknown, failures: number): boolean {
    if (failures >= this.#options.maxRetries) return false;
    if (error instanceof APIConnectionError) return true;
    if (!(error instanceof APIStatusError)) return false;
    const isFinalConflict = error.status === 409 && !this.#options.retriesConflicts;
    return !isFinalConflict && shouldRetry(error);
  }

  delayFor(error: unknown, failures: number): number {
    const { clock, random } = this.#options.runtime;
    const headers = error instanceof APIStatusError ? error.headers : undefined;
    return retryDelayMs(failures, headers, clock.wallTime(), random);
  }

  onFailure(error: unknown, delayMs: number | null): void {
    if (!(error instanceof APIError)) return;
    const attempt = toAttempt(error, delayMs);
    this.#attempts ??= [];
    this.#attempts.push(attempt);
    if (delayMs === null) {
      error.attempts = this.#attempts;
      return;
    }
    const { endpoint, runtime } = this.#options;
    const { status, message } = attempt;
    const report = { endpoint, by: "http", status, message, delayMs } as const;
    runtime.retries.report(report, { isBackground: this.#isBackground });
  }
}
