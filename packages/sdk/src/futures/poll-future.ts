import { WireError } from "../errors/wire-error.js";
import type { HttpResponse, Headers } from "../transport/message.js";
import type {
  CompleteMetadataResponse,
  RequestFailedResponse,
  TryAgainResponse,
} from "../types/futures.js";
import { decodeJson, parseText } from "../wire/json-codec.js";
import { stringifyJson } from "../wire/json-text.js";
import type { WireTypeName, WireValue } from "../wire/wire-types.js";
import { APIError, APIStatusError, APITimeoutError, toAttempt } from "../errors/api-error.js";
import { RequestExpiredError, ResultError } from "../errors/request-failed-error.js";
import { type Cancellation, sleep } from "../runtime/cancellation.js";
import type { Connection } from "../session/connection.js";
import type { QueueStateLog } from "../session/queue-state-log.js";
import type { Acceptance } from "../transport/api.js";
import { retry, retryTable, type RetryPolicy } from "../transport/retry.js";
import { routes } from "../wire/routes.js";
import type { Operation } from "./operation.js";
import { PollPolicy, type PollDecision } from "./poll-policy.js";
import { PollReporter } from "./poll-reporter.js";

/** Kinds of requests, as the server's statistics name them. */
export type RequestType =
  | "CreateModel"
  | "Forward"
  | "ForwardBackward"
  | "OptimStep"
  | "SaveWeights"
  | "SaveWeightsForSampler"
  | "SaveWeightsExternal"
  | "LoadWeights"
  | "Sample";

/** A request that the server has accepted, and what its result will be. */
export interface AcceptedRequest<N extends WireTypeName> extends Acceptance {
  readonly requestType: RequestType;
  readonly resultType: N;
  /** From the start of the operation to the acceptance. */
  readonly roundTripMs: number;
}

/** The context of a poll. */
export interface PollContext {
  /** The session, or the connection of work without one. */
  readonly host: Connection;
  readonly queueLog: QueueStateLog;
  readonly operation: Operation;
  /** Ends the wait. */
  readonly signal: Cancellation;
}

/** Asks for the result of an accepted request until it is there. */
export function pollFuture<N extends WireTypeName>(
  request: AcceptedRequest<N>,
  context: PollContext,
): Promise<WireValue<N>> {
  return new Poller(request, context).run();
}

type ResultAnswer<N extends WireTypeName> = Extract<PollAnswer<N>, { kind: "result" }>;

const { timeoutMs: usualTimeoutMs, maxAnswerBytes: usualMaxBytes = 0 } = routes.retrieveFuture;
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
  #knownPolicy: PollPolicy | undefined;
  readonly #acceptedAt: number;
  #knownReporter: PollReporter | undefined;
  #iteration = -1;
  #askedAt = 0;
  #timeoutMs = 0;
  #decision: PollDecision = fatal;
  #isHeldPoll = false;
  #reservedBytes: number | undefined;
  #isPausedByBilling = false;

  constructor(request: AcceptedRequest<N>, context: PollContext) {
    this.#request = request;
    this.#context = context;
    this.#acceptedAt = context.host.runtime.clock.now();
  }

  /** Most results come with the acceptance or the first poll. */
  get #policy(): PollPolicy {
    return (this.#knownPolicy ??= new PollPolicy());
  }

  /** Most results come without anything to report. */
  get #reporter(): PollReporter {
    return (this.#knownReporter ??= new PollReporter(
      this.#request,
      this.#context,
      this.#policy,
      this.#acceptedAt,
    ));
  }

  async run(): Promise<WireValue<N>> {
    const { host, signal } = this.#context;
    const { clock } = host.runtime;
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
        this.#knownPolicy?.answered();
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
        host.parts.inflightResponses.release(this.#reservedBytes);
      }
    }
  }

  #ask(): Promise<HttpResponse> {
    const { host, operation, signal } = this.#context;
    const { requestId } = this.#request;
    operation.polled();
    this.#askedAt = host.runtime.clock.now();
    this.#timeoutMs = host.parts.pollTimeout.currentMs;
    this.#iteration++;
    const allowMetadataOnly = this.#reservedBytes === undefined;
    // Written by hand: polls are the most frequent requests of all.
    const content = `{"request_id":${JSON.stringify(requestId)},"allow_metadata_only":${allowMetadataOnly}}`;
    return host.api.exchange(
      "retrieveFuture",
      { content },
      {
        headers: this.#headers(),
        signal,
        timeoutMs: this.#timeoutMs,
        // What was announced may be larger than what is usual.
        maxAnswerBytes: Math.max(usualMaxBytes, 2 * (this.#reservedBytes ?? 0)),
      },
    );
  }

  #headers(): Headers {
    const { requestType, resultType, roundTripMs } = this.#request;
    const { dialect } = this.#context.host;
    const wantsProto = protoTypes.has(resultType) && dialect.current === "proto";
    const headers: Record<string, string> = {
      "x-tinker-request-iteration": String(this.#iteration),
      "x-tinker-request-type": requestType,
      "x-stainless-raw-response": "raw",
    };
    if (this.#iteration === 0) {
      headers["x-tinker-create-promise-roundtrip-time"] = String(roundTripMs / 1000);
    }
    if (this.#timeoutMs !== usualTimeoutMs) {
      headers["x-stainless-read-timeout"] = String(this.#timeoutMs / 1000);
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
    const { host, operation } = this.#context;
    operation.spent("decodeMs", arrivedAt);
    operation.add("downloadMs", response.downloadMs);
    operation.add("queueMs", Math.max(0, arrivedAt - response.downloadMs - this.#acceptedAt));
    if (form === "json" && protoTypes.has(this.#request.resultType)) {
      host.dialect.hint("json", "it sent a result as JSON");
    }
    return value;
  }

  /** Waits for what must be waited for before the next question. */
  async #goOn(answer: Exclude<PollAnswer<N>, ResultAnswer<N>>, arrivedAt: number): Promise<void> {
    switch (answer.kind) {
      case "pending":
        this.#isPending(arrivedAt);
        this.#note(200, answer.answer.queueStateReason ?? answer.answer.queueState);
        this.#reporter.queueState(answer.answer.queueState, answer.answer.queueStateReason);
        return this.#pause(this.#policy.pendingDelayMs(arrivedAt - this.#askedAt));
      case "announced":
        this.#note(200, "the result is ready");
        return this.#reserve(answer.answer.responsePayloadSize);
      case "failed":
        return this.#reporter.failRequest(answer.answer, this.#iteration);
    }
  }

  #isPending(arrivedAt: number): void {
    this.#context.host.parts.pollTimeout.answeredPending(arrivedAt - this.#askedAt);
  }

  #note(status: number | null, message: string): void {
    const { host, operation } = this.#context;
    operation.lastAnswer = { status, message, time: host.runtime.clock.wallTime() };
  }

  async #reserve(sizeBytes: number): Promise<void> {
    if (this.#reservedBytes !== undefined) {
      throw new ResultError(
        this.#request.requestId,
        "The server announced the size of the result twice instead of sending it.",
      );
    }
    const { host, signal } = this.#context;
    await host.parts.inflightResponses.acquire(sizeBytes, signal);
    this.#reservedBytes = sizeBytes;
  }

  // How asking goes on after a failure, as the policy decides.

  shouldRetry(error: unknown): boolean {
    if (!(error instanceof APIError)) return false;
    this.#decision = this.#decide(error);
    return this.#decision.kind === "retry" || this.#decision.kind === "billing";
  }

  delayFor(): number {
    return this.#decision.kind === "retry" ? this.#decision.delayMs : retryTable.unpaid.pauseMs;
  }

  onFailure(error: unknown, delayMs: number | null): void {
    if (!(error instanceof APIError)) return;
    const { operation, host } = this.#context;
    const status = error instanceof APIStatusError ? error.status : null;
    this.#note(status, error.message);
    if (status === 408) this.#isPending(host.runtime.clock.now());
    if (this.#decision.kind === "billing") {
      this.#isPausedByBilling = true;
      operation.paused(error.message);
      return;
    }
    if (this.#isHeldPoll) return;
    this.#reporter.pollFailed(error, this.#decision, this.#iteration);
    if (delayMs !== null && status !== 408) operation.failedAttempt(toAttempt(error, delayMs));
  }

  #decide(error: APIError): PollDecision {
    const { billing, parts, runtime } = this.#context.host;
    this.#isHeldPoll =
      error instanceof APITimeoutError &&
      !error.hasBegun &&
      parts.pollTimeout.extend(this.#timeoutMs);
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
    const { host, signal } = this.#context;
    if (delayMs > 0) await sleep(host.runtime.clock, delayMs, signal);
  }
}

/** While it is not known what the server speaks, JSON is fine too. */
function acceptProto(isSettled: boolean): string {
  return isSettled ? "application/x-protobuf" : "application/x-protobuf, application/json";
}

/** How a request that is not done yet stands. */
export type PendingAnswer = Pick<TryAgainResponse, "queueState" | "queueStateReason">;

/** The answers to a poll; there is no envelope around them. */
export type PollAnswer<N extends WireTypeName> =
  | { readonly kind: "pending"; readonly answer: PendingAnswer }
  | { readonly kind: "announced"; readonly answer: CompleteMetadataResponse }
  | { readonly kind: "failed"; readonly answer: RequestFailedResponse }
  | { readonly kind: "result"; readonly form: "proto" | "json"; readonly value: WireValue<N> };

type ProtoCodec = typeof import("../wire/client-codec.js");
let protoCodec: ProtoCodec | undefined;

/**
 * Reads the answer to a poll for a result of type `typeName`; throws `WireError`. The first protobuf has
 * to wait for what reads it.
 */
export function readPollAnswer<N extends WireTypeName>(
  typeName: N,
  { headers, body }: HttpResponse,
): PollAnswer<N> | Promise<PollAnswer<N>> {
  if (!headers["content-type"]?.includes("application/x-protobuf")) {
    return readJsonAnswer(typeName, body);
  }
  if (protoCodec) return readProtoAnswer(protoCodec, typeName, body);
  return import("../wire/client-codec.js").then((loaded) => {
    protoCodec = loaded;
    return readProtoAnswer(loaded, typeName, body);
  });
}

function readProtoAnswer<N extends WireTypeName>(
  { hasProto, decodeProto }: ProtoCodec,
  typeName: N,
  body: Uint8Array,
): PollAnswer<N> {
  if (!hasProto(typeName)) {
    throw new WireError("decode", typeName, "", "the server sent protobuf, expected JSON");
  }
  return { kind: "result", form: "proto", value: decodeProto(typeName, body) };
}

function readJsonAnswer<N extends WireTypeName>(typeName: N, body: Uint8Array): PollAnswer<N> {
  const json = parseText(typeName, body);
  const fields = typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {};
  if (fields["type"] === "try_again") {
    return { kind: "pending", answer: readPending(fields) };
  }
  if (fields["status"] === "complete_metadata") {
    return { kind: "announced", answer: decodeJson("CompleteMetadataResponse", json) };
  }
  if ("error" in fields) {
    return {
      kind: "failed",
      answer: decodeJson("RequestFailedResponse", {
        ...fields,
        error: wordsOf(fields["error"]),
        category: typeof fields["category"] === "string" ? fields["category"] : "unknown",
      }),
    };
  }
  return { kind: "result", form: "json", value: decodeJson(typeName, json) };
}

/** Only the type is required; the other fields are optional details. */
function readPending(fields: Readonly<Record<string, unknown>>): PendingAnswer {
  const { queue_state: queueState, queue_state_reason: reason } = fields;
  return {
    queueState: typeof queueState === "string" ? queueState : "unknown",
    queueStateReason: typeof reason === "string" ? reason : null,
  };
}

/** Whatever the server put where its words belong. */
function wordsOf(error: unknown): string {
  if (typeof error === "string" && error !== "") return error;
  return error === null || error === "" ? "The server gave no reason." : stringifyJson(error);
}
