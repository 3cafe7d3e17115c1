import { APIError, APIStatusError, APITimeoutError, toAttempt } from "../errors/api-error.js";
import { RequestExpiredError, ResultError } from "../errors/request-failed-error.js";
import { retry, type RetryPolicy } from "../runtime/retry.js";
import { sleep } from "../runtime/sleep.js";
import { billingPauseMs } from "../session/billing-pause.js";
import type { Headers, HttpResponse } from "../transport/message.js";
import { routes } from "../wire/routes.js";
import type { WireTypeName, WireValue } from "../wire/wire-types.js";
import { readPollAnswer, type PollAnswer } from "./poll-answer.js";
import type { AcceptedRequest, PollContext } from "./poll-context.js";
import { PollPolicy, type PollDecision } from "./poll-policy.js";
import { PollReporter } from "./poll-reporter.js";

/** Asks for the result of an accepted request until it is there. */
export function pollFuture<N extends WireTypeName>(
  request: AcceptedRequest<N>,
  context: PollContext,
): Promise<WireValue<N>> {
  return new Poller(request, context).run();
}

type ResultAnswer<N extends WireTypeName> = Extract<PollAnswer<N>, { kind: "result" }>;

const { timeoutMs: usualPatienceMs, maxAnswerBytes: usualMaxBytes = 0 } = routes.retrieveFuture;
const fatal: PollDecision = { kind: "fatal" };
const protoTypes: ReadonlySet<string> = new Set(["SampleResponse", "ForwardBackwardOutput"]);

/**
 * One result on its way.
 *
 * - There is no time limit of its own: the caller's `timeoutMs` and `signal` are.
 * - A large result is first announced with its size; it is fetched when there is room for that many
 *   bytes, and the room is given back on every way out.
 */
class Poller<N extends WireTypeName> implements RetryPolicy {
  readonly #request: AcceptedRequest<N>;
  readonly #context: PollContext;
  readonly #policy = new PollPolicy();
  readonly #acceptedAt: number;
  #knownReporter: PollReporter | undefined;
  #iteration = -1;
  #askedAt = 0;
  #patienceMs = 0;
  #decision: PollDecision = fatal;
  #isHeldPoll = false;
  #reservedBytes: number | undefined;
  #isPausedByBilling = false;

  constructor(request: AcceptedRequest<N>, context: PollContext) {
    this.#request = request;
    this.#context = context;
    this.#acceptedAt = context.connection.runtime.clock.now();
  }

  /** Most results come without anything to tell. */
  get #reporter(): PollReporter {
    return (this.#knownReporter ??= new PollReporter(
      this.#request,
      this.#context,
      this.#policy,
      this.#acceptedAt,
    ));
  }

  async run(): Promise<WireValue<N>> {
    const { connection, signal } = this.#context;
    const { clock } = connection.runtime;
    const { outcome } = this.#request;
    const ask = (): Promise<HttpResponse> => this.#ask();
    try {
      if (outcome) {
        this.#iteration = 0;
        const answer = await this.#read(outcome);
        if (answer.kind === "result") return this.#take(answer, outcome, this.#acceptedAt);
        await this.#goOn(answer, this.#acceptedAt);
      }
      for (;;) {
        const response = await retry(ask, this, { clock, signal });
        this.#policy.answered();
        if (this.#isPausedByBilling) this.#context.operation.resumed();
        this.#isPausedByBilling = false;
        const arrivedAt = clock.now();
        const answer = await this.#read(response);
        if (answer.kind === "result") return this.#take(answer, response, arrivedAt);
        await this.#goOn(answer, arrivedAt);
      }
    } catch (error) {
      return this.#explain(error);
    } finally {
      if (this.#reservedBytes !== undefined) {
        connection.inflightResponses.release(this.#reservedBytes);
      }
    }
  }

  #ask(): Promise<HttpResponse> {
    const { connection, operation, signal } = this.#context;
    const { requestId } = this.#request;
    operation.polled();
    this.#askedAt = connection.runtime.clock.now();
    this.#patienceMs = connection.pollPatience.currentMs;
    this.#iteration++;
    const allowMetadataOnly = this.#reservedBytes === undefined;
    // Written by hand: polls are the most frequent requests of all.
    const content = `{"request_id":${JSON.stringify(requestId)},"allow_metadata_only":${allowMetadataOnly}}`;
    return connection.api.exchange(
      "retrieveFuture",
      { content },
      {
        headers: this.#headers(),
        signal,
        timeoutMs: this.#patienceMs,
        // What was announced may be larger than what is usual.
        maxAnswerBytes: Math.max(usualMaxBytes, 2 * (this.#reservedBytes ?? 0)),
      },
    );
  }

  #headers(): Headers {
    const { requestType, resultType, roundTripMs } = this.#request;
    const { dialect } = this.#context.connection;
    const wantsProto = protoTypes.has(resultType) && dialect.current === "proto";
    const headers: Record<string, string> = {
      "x-tinker-request-iteration": String(this.#iteration),
      "x-tinker-request-type": requestType,
      "x-stainless-raw-response": "raw",
    };
    if (this.#iteration === 0) {
      headers["x-tinker-create-promise-roundtrip-time"] = String(roundTripMs / 1000);
    }
    if (this.#patienceMs !== usualPatienceMs) {
      headers["x-stainless-read-timeout"] = String(this.#patienceMs / 1000);
    }
    if (wantsProto) headers["accept"] = acceptProto(dialect.isSettled);
    return headers;
  }

  #read(response: HttpResponse): PollAnswer<N> | Promise<PollAnswer<N>> {
    const fail = (error: unknown): never =>
      this.#reporter.failUnreadable(error, response, this.#iteration);
    try {
      const answer = readPollAnswer(this.#request.resultType, response);
      return "kind" in answer ? answer : answer.catch(fail);
    } catch (error) {
      return fail(error);
    }
  }

  #take({ form, value }: ResultAnswer<N>, response: HttpResponse, arrivedAt: number): WireValue<N> {
    const { connection, operation } = this.#context;
    operation.spent("decodeMs", arrivedAt);
    operation.add("downloadMs", response.downloadMs);
    operation.add("queueMs", Math.max(0, arrivedAt - response.downloadMs - this.#acceptedAt));
    if (form === "json" && protoTypes.has(this.#request.resultType)) {
      connection.dialect.suppose("json", "it sent a result as JSON");
    }
    return value;
  }

  /** Waits for what must be waited for before the next question. */
  async #goOn(answer: Exclude<PollAnswer<N>, ResultAnswer<N>>, arrivedAt: number): Promise<void> {
    switch (answer.kind) {
      case "pending":
        this.#reporter.queueState(answer.answer.queueState, answer.answer.queueStateReason);
        return this.#pause(this.#policy.pendingDelayMs(arrivedAt - this.#askedAt));
      case "announced":
        return this.#reserve(answer.answer.responsePayloadSize);
      case "failed":
        return this.#reporter.failRequest(answer.answer, this.#iteration);
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

  // How asking goes on after a failure, as the policy decides.

  shouldRetry(error: unknown): boolean {
    if (!(error instanceof APIError)) return false;
    this.#decision = this.#decide(error);
    return this.#decision.kind === "retry" || this.#decision.kind === "billing";
  }

  delayFor(): number {
    return this.#decision.kind === "retry" ? this.#decision.delayMs : billingPauseMs;
  }

  onFailure(error: unknown, delayMs: number | null): void {
    if (!(error instanceof APIError)) return;
    const { operation } = this.#context;
    if (this.#decision.kind === "billing") {
      this.#isPausedByBilling = true;
      operation.paused(error.message);
      return;
    }
    if (this.#isHeldPoll) return;
    this.#reporter.pollFailed(error, this.#decision, this.#iteration);
    const isPending = error instanceof APIStatusError && error.status === 408;
    if (delayMs !== null && !isPending) operation.failedAttempt(toAttempt(error, delayMs));
  }

  #decide(error: APIError): PollDecision {
    const { billing, pollPatience, runtime } = this.#context.connection;
    this.#isHeldPoll =
      error instanceof APITimeoutError &&
      !error.hasBegun &&
      pollPatience.lengthen(this.#patienceMs);
    if (this.#isHeldPoll) return { kind: "retry", delayMs: 0 };
    const { clock } = runtime;
    const decision = this.#policy.decide(error, clock.now() - this.#askedAt, clock.wallTime());
    const isUnpaid = decision.kind === "billing" && !billing.shouldPause(error.message);
    return isUnpaid ? fatal : decision;
  }

  #explain(error: unknown): never {
    if (!(error instanceof APIError) || this.#context.signal.aborted) throw error;
    const { requestId } = this.#request;
    if (this.#decision.kind === "expired")
      throw new RequestExpiredError(requestId, { cause: error });
    throw new ResultError(
      requestId,
      `The result of request ${requestId} could not be fetched: ${error.message}`,
      { cause: error },
    );
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
