import { APIConnectionError, APIStatusError, type APIError } from "../errors/api-error.js";
import { RequestFailedError, ResultError } from "../errors/request-failed-error.js";
import { isUserError } from "../errors/tinker-error.js";
import { decodeWith } from "../schema/decode.js";
import type { HttpResponse } from "../transport/message.js";
import { QueueState, type RequestFailedResponse } from "../types/futures.js";
import type { WireTypeName } from "../wire/wire-types.js";
import type { AcceptedRequest, PollContext } from "./poll-future.js";
import type { PollDecision, PollPolicy } from "./poll-policy.js";

const telemetryKinds = {
  retry: "retry",
  billing: "fatal",
  expired: "retryable_exception",
  fatal: "fatal",
} as const;

/** Reports the progress of a poll to telemetry, listeners and the log. */
export class PollReporter {
  readonly #request: AcceptedRequest<WireTypeName>;
  readonly #context: PollContext;
  readonly #policy: PollPolicy;
  readonly #startedAt: number;

  constructor(
    request: AcceptedRequest<WireTypeName>,
    context: PollContext,
    policy: PollPolicy,
    startedAt: number,
  ) {
    this.#request = request;
    this.#context = context;
    this.#policy = policy;
    this.#startedAt = startedAt;
  }

  /** The server reported the state of its queue; an unknown state without a reason is not reported. */
  queueState(queueState: QueueState, reason: string | null): void {
    const isKnown = queueState === "active" || queueState.startsWith("paused");
    if (!isKnown && reason === null) return;
    const { queueLog, operation } = this.#context;
    operation.queued(queueState, queueLog.report(queueState, reason, this.#request.requestId));
  }

  pollFailed(error: APIError, decision: PollDecision, iteration: number): void {
    const { runtime, telemetry } = this.#context.host;
    const status = error instanceof APIStatusError ? error.status : null;
    if (status === 408) this.#queueStateOf(error.body);
    const isRetried = decision.kind === "retry";
    const isConnection = error instanceof APIConnectionError;
    const isSerious = decision.kind === "fatal" || status === 400;
    telemetry.log(
      `APIFuture.result_async.${isConnection ? "connection_error" : "api_status_error"}`,
      isSerious ? "ERROR" : "WARNING",
      {
        ...this.#facts(iteration),
        status_code: status ?? 0,
        detail: error.message,
        kind: isConnection || status === 429 ? "retry_with_backoff" : telemetryKinds[decision.kind],
        should_retry: isRetried,
        is_user_error: isUserError(error),
        exception: error.message,
        exception_type: error.name,
        bad_request_retries: this.#policy.badRequests,
        connection_error_retries: this.#policy.connectionFailures,
        ...(isSerious && error instanceof APIStatusError
          ? { response_headers: error.headers, response_body: error.body }
          : {}),
      },
    );
    if (!isRetried || status === 408) return;
    const { message } = error;
    const { delayMs } = decision;
    runtime.retries.report({
      endpoint: "retrieveFuture",
      by: "poll",
      status,
      message,
      delayMs,
    });
  }

  /** The server worked on the request and it failed. */
  failRequest({ error, category }: RequestFailedResponse, iteration: number): never {
    this.#context.host.telemetry.log(
      "APIFuture.result_async.application_error",
      category === "user" ? "WARNING" : "ERROR",
      {
        ...this.#facts(iteration),
        error,
        error_category: category[0]!.toUpperCase() + category.slice(1),
        is_user_error: category === "user",
      },
    );
    const { requestId } = this.#request;
    throw new RequestFailedError(error, { requestId, category });
  }

  /** The answer does not match the API schema. */
  failUnreadable(error: unknown, response: HttpResponse, iteration: number): never {
    const { requestId, resultType } = this.#request;
    const problem = error instanceof Error ? error.message : String(error);
    const isProto = response.headers["content-type"]?.includes("protobuf") ?? false;
    this.#context.host.telemetry.log(
      `APIFuture.result_async.${isProto ? "proto_deserialization_error" : "validation_error"}`,
      "ERROR",
      {
        ...this.#facts(iteration),
        exception: problem,
        model_cls: resultType,
        ...(isProto ? { proto_bytes_len: response.body.byteLength } : {}),
      },
    );
    throw new ResultError(
      requestId,
      `The result of request ${requestId} is unreadable: ${problem}`,
      {
        cause: error,
      },
    );
  }

  #queueStateOf(body: unknown): void {
    if (typeof body !== "object" || body === null) return;
    const { queue_state: state, queue_state_reason: reason } = body as Record<string, unknown>;
    if (typeof state !== "string") return;
    const known = decodeWith(QueueState, "QueueState", state);
    this.queueState(known, typeof reason === "string" ? reason : null);
  }

  #facts(iteration: number): Record<string, unknown> {
    const { clock } = this.#context.host.runtime;
    return {
      request_id: this.#request.requestId,
      request_type: this.#request.requestType,
      iteration,
      elapsed_time: (clock.now() - this.#startedAt) / 1000,
    };
  }
}
