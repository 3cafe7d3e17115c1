import { APIError, APIStatusError, toAttempt } from "../errors/api-error.js";
import { RequestExpiredError, ResultError } from "../errors/request-failed-error.js";
import { sleep } from "../runtime/sleep.js";
import { billingPauseMs } from "../session/billing-pause.js";
import { jsonBody } from "../transport/api.js";
import type { Headers, HttpResponse } from "../transport/message.js";
import { encodeJson } from "../wire/json-codec.js";
import type { WireTypeName, WireValue } from "../wire/wire-types.js";
import { readPollAnswer } from "./poll-answer.js";
import type { AcceptedRequest, PollContext } from "./poll-context.js";
import { PollPolicy } from "./poll-policy.js";
import { PollReporter } from "./poll-reporter.js";

/** Asks for the result of an accepted request until it is there. */
export function pollFuture<N extends WireTypeName>(
  request: AcceptedRequest<N>,
  context: PollContext,
): Promise<WireValue<N>> {
  return new Poller(request, context).run();
}

const protoTypes: ReadonlySet<string> = new Set(["SampleResponse", "ForwardBackwardOutput"]);

/**
 * One result on its way.
 *
 * - There is no time limit of its own: the caller's `timeoutMs` and `signal` are.
 * - A large result is first announced with its size; it is fetched when there is room for that many
 *   bytes, and the room is given back on every way out.
 */
class Poller<N extends WireTypeName> {
  readonly #request: AcceptedRequest<N>;
  readonly #context: PollContext;
  readonly #reporter: PollReporter;
  readonly #policy = new PollPolicy();
  #iteration = 0;
  #askedAt = 0;
  #reservedBytes: number | undefined;
  #isPausedByBilling = false;

  constructor(request: AcceptedRequest<N>, context: PollContext) {
    this.#request = request;
    this.#context = context;
    this.#reporter = new PollReporter(request, context, this.#policy);
  }

  async run(): Promise<WireValue<N>> {
    const { connection } = this.#context;
    const acceptedAt = connection.runtime.clock.now();
    try {
      for (;;) {
        const response = await this.#askSafely();
        const value = response && (await this.#read(response, acceptedAt));
        if (value !== undefined) return value;
        this.#iteration++;
      }
    } finally {
      if (this.#reservedBytes !== undefined) {
        connection.inflightResponses.release(this.#reservedBytes);
      }
    }
  }

  async #askSafely(): Promise<HttpResponse | undefined> {
    try {
      const response = await this.#ask();
      this.#policy.answered();
      if (this.#isPausedByBilling) this.#context.operation.resumed();
      this.#isPausedByBilling = false;
      return response;
    } catch (error) {
      if (!(error instanceof APIError)) throw error;
      await this.#afterFailure(error);
      return undefined;
    }
  }

  #ask(): Promise<HttpResponse> {
    const { connection, operation, signal } = this.#context;
    const { requestId } = this.#request;
    operation.polled();
    this.#askedAt = connection.runtime.clock.now();
    const allowMetadataOnly = this.#reservedBytes === undefined;
    const body = jsonBody(encodeJson("FutureRetrieveRequest", { requestId, allowMetadataOnly }));
    const headers = this.#headers();
    return connection.api.exchange("retrieveFuture", body, { headers, signal });
  }

  #headers(): Headers {
    const { requestType, resultType, roundTripMs } = this.#request;
    const { dialect } = this.#context.connection;
    const wantsProto = protoTypes.has(resultType) && dialect.current === "proto";
    return {
      "x-tinker-request-iteration": String(this.#iteration),
      "x-tinker-request-type": requestType,
      "x-stainless-raw-response": "raw",
      ...(this.#iteration === 0
        ? { "x-tinker-create-promise-roundtrip-time": String(roundTripMs / 1000) }
        : {}),
      ...(wantsProto ? { accept: acceptProto(dialect.isSettled) } : {}),
    };
  }

  /** The result, or undefined when there is none yet. */
  async #read(response: HttpResponse, acceptedAt: number): Promise<WireValue<N> | undefined> {
    const { connection, operation } = this.#context;
    const { clock } = connection.runtime;
    const arrivedAt = clock.now();
    const answer = await readPollAnswer(this.#request.resultType, response).catch(
      (error: unknown) => this.#reporter.failUnreadable(error, response, this.#iteration),
    );
    switch (answer.kind) {
      case "pending":
        this.#reporter.queueState(answer.answer.queueState, answer.answer.queueStateReason);
        await this.#pause(this.#policy.pendingDelayMs(arrivedAt - this.#askedAt));
        return undefined;
      case "announced":
        await this.#reserve(answer.answer.responsePayloadSize);
        return undefined;
      case "failed":
        return this.#reporter.failRequest(answer.answer, this.#iteration);
      case "result":
        operation.spent("decodeMs", arrivedAt);
        operation.add("downloadMs", response.downloadMs);
        operation.add("queueMs", arrivedAt - response.downloadMs - acceptedAt);
        if (answer.form === "json" && protoTypes.has(this.#request.resultType)) {
          connection.dialect.suppose("json", "it sent a result as JSON");
        }
        return answer.value;
    }
  }

  async #reserve(sizeBytes: number): Promise<void> {
    if (this.#reservedBytes !== undefined) {
      throw new ResultError(
        this.#request.requestId,
        "The server announced the size of the result twice instead of sending it.",
      );
    }
    const { connection, signal } = this.#context;
    await connection.inflightResponses.acquire(sizeBytes, signal);
    this.#reservedBytes = sizeBytes;
  }

  async #afterFailure(error: APIError): Promise<void> {
    const { connection, operation } = this.#context;
    const { requestId } = this.#request;
    const heldMs = connection.runtime.clock.now() - this.#askedAt;
    const decision = this.#policy.decide(error, heldMs);
    if (decision.kind === "billing" && connection.billing.shouldPause(error.message)) {
      this.#isPausedByBilling = true;
      operation.paused(error.message);
      return this.#pause(billingPauseMs);
    }
    const isRetried = decision.kind === "retry";
    this.#reporter.pollFailed(error, decision, this.#iteration);
    if (decision.kind === "expired") throw new RequestExpiredError(requestId, { cause: error });
    if (!isRetried) {
      throw new ResultError(
        requestId,
        `The result of request ${requestId} could not be fetched: ${error.message}`,
        { cause: error },
      );
    }
    if (!(error instanceof APIStatusError && error.status === 408)) {
      operation.failedAttempt(toAttempt(error, decision.delayMs));
    }
    return this.#pause(decision.delayMs);
  }

  async #pause(delayMs: number): Promise<void> {
    const { connection, signal } = this.#context;
    if (delayMs > 0) await sleep(connection.runtime.clock, delayMs, signal);
  }
}

/** While it is not known what the server speaks, JSON is fine too. */
function acceptProto(isSettled: boolean): string {
  return isSettled ? "application/x-protobuf" : "application/x-protobuf, application/json";
}
