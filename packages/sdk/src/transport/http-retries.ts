import { APIConnectionError, APIError, toAttempt, type Attempt } from "../errors/api-error.js";
import type { Runtime } from "../runtime/runtime.js";
import { sleep } from "../runtime/sleep.js";
import type { HttpRequest, HttpResponse, Send } from "./message.js";
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
 *
 * Nearly all calls succeed at once, by the thousand; the loop, which takes memory, is for the others.
 */
export function sendWithRetries(
  send: Send,
  request: HttpRequest,
  options: HttpRetryOptions,
): Promise<HttpResponse> {
  return send(request).then(
    (response) =>
      isSuccess(response)
        ? response
        : sendAgain(send, request, options, () => Promise.resolve(response)),
    (error: unknown) => sendAgain(send, request, options, () => Promise.reject(error)),
  );
}

async function sendAgain(
  send: Send,
  request: HttpRequest,
  options: HttpRetryOptions,
  first: () => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const { clock, random, retries } = options.runtime;
  const attempts: Attempt[] = [];
  for (let retryIndex = 0; ; retryIndex++) {
    let failure: APIError;
    let response: HttpResponse | undefined;
    try {
      response = await (retryIndex === 0 ? first() : send({ ...request, retryCount: retryIndex }));
      if (isSuccess(response)) return response;
      failure = toStatusError(response, request);
      const isFinalConflict = response.status === 409 && !options.retriesConflicts;
      if (isFinalConflict || !shouldRetry(response)) throw failure;
    } catch (error) {
      if (!(error instanceof APIConnectionError)) throw withAttempts(error, attempts);
      failure = error;
    }
    if (retryIndex >= options.maxRetries) throw withAttempts(failure, attempts);
    const delayMs = retryDelayMs(retryIndex, response?.headers, clock.wallTime(), random);
    const attempt = toAttempt(failure, delayMs);
    attempts.push(attempt);
    const { status, message } = attempt;
    const { endpoint } = options;
    retries.report({ endpoint, by: "http", status, message, delayMs }, request.isBackground);
    await sleep(clock, delayMs, request.signal, request.isBackground);
  }
}

function isSuccess({ status }: HttpResponse): boolean {
  return status >= 200 && status < 300;
}

function withAttempts(error: unknown, earlier: readonly Attempt[]): unknown {
  if (!(error instanceof APIError)) return error;
  error.attempts = [...earlier, toAttempt(error, null)];
  return error;
}
