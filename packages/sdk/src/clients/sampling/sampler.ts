import { NotFoundError, type APIStatusError, toAttempt } from "../../errors/api-error.js";
import { ResultError } from "../../errors/request-failed-error.js";
import type { Operation } from "../../futures/operation.js";
import type { Connection } from "../../session/connection.js";
import { type EncodedBody, holdHeaders, type Acceptance } from "../../transport/api.js";
import { askedDelayMs, type CallRetries } from "../../transport/retry.js";
import { pollFuture } from "../../futures/poll-future.js";
import { hasFlag } from "../../session/flags.js";
import { QueueStateLog } from "../../session/queue-state-log.js";
import type { Headers, HttpResponse } from "../../transport/message.js";
import type { SampleResponse, SamplingParams } from "../../types/sampling.js";
import { estimatePromptBytes } from "../byte-estimate.js";
import {
  completeRetryConfig,
  type CompleteRetryConfig,
  type RetryHandler,
  retryHandlerFor,
} from "./retry-handler.js";
import { SampleBodies } from "./sample-body.js";
import { nameSequences, type SampleCall } from "./sample-call.js";

export { checkScores, withExtras } from "./sample-call.js";

const sampleHeaders = { "x-tinker-sampling-backpressure": "1" };

/** What a sample is drawn from, as the request names it. */
export type SampleTarget =
  | { readonly samplingSessionId: string }
  | { readonly baseModel: string }
  | { readonly modelPath: string };

/** Makes samples from one set of weights. */
export class Sampler {
  /** A session, or a connection without one. */
  readonly host: Connection;
  readonly target: SampleTarget;
  readonly retryConfig: CompleteRetryConfig;
  readonly #handler: RetryHandler;
  readonly #queueLog: QueueStateLog;
  readonly #bodies: SampleBodies;
  #nextSeqId: number;
  #checkedParams: SamplingParams | undefined;

  constructor(
    host: Connection,
    target: SampleTarget,
    retryConfig: CompleteRetryConfig,
    firstSeqId = 0,
  ) {
    this.host = host;
    this.target = target;
    this.retryConfig = retryConfig;
    this.#handler = retryHandlerFor(host, nameOfTarget(target), retryConfig);
    this.#bodies = new SampleBodies(target);
    this.#nextSeqId = firstSeqId;
    const subject = { activity: "Sampling", name: nameOfTarget(target) } as const;
    this.#queueLog = new QueueStateLog(host.runtime, subject);
  }

  /** Samples as the server's flags want it: until it succeeds, or once. */
  sample(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    return this.host.config.sampleNoRetries
      ? this.#sampleOnce(call, operation)
      : this.sampleWithRetries(call, operation);
  }

  /** Samples until it succeeds. */
  sampleWithRetries(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    return this.#handler.run({ attempt: () => this.#sampleOnce(call, operation), operation });
  }

  /** Opens a stream of tokens; rejects like any call where the server has none. */
  openStream(call: SampleCall, operation: Operation): Promise<HttpResponse> {
    const { api } = this.host;
    const { signal } = operation;
    return dispatchSample(this.host, operation, {
      sizeBytes: estimatePromptBytes(call.prompt, call.targetPromptLogprobs),
      encode: () => this.#bodies.write(call),
      send: (body, retries) =>
        api.exchange("streamSample", body, {
          headers: sampleHeaders,
          signal,
          streams: true,
          retries,
        }),
    });
  }

  /** Looked at once for equal parameters, which are the same object, and beside the sample. */
  #checkParams(params: SamplingParams): void {
    if (params === this.#checkedParams) return;
    this.#checkedParams = params;
    const { seed, stop, topK, topP } = params;
    if (seed === null && stop === null && topK <= 0 && topP === 1) return;
    this.host.parts.farewells.send(async () => {
      const { checkSampling } = await import("../../session/silences.js");
      await checkSampling(this.host, params);
    });
  }

  /** Submits one request, under a number of its own, and waits for its result. */
  #sampleOnce(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    const { api } = this.host;
    const { signal } = operation;
    this.#checkParams(call.samplingParams);
    // Without a session there is nothing that numbers would count in.
    const seqId = "samplingSessionId" in this.target ? this.#nextSeqId++ : undefined;
    const sizeBytes = estimatePromptBytes(call.prompt, call.targetPromptLogprobs);
    return dispatchSample(this.host, operation, {
      sizeBytes,
      encode: () => this.#bodies.write(call, seqId),
      send: (body, retries) => {
        const options = { headers: this.#headersFor(sizeBytes), signal, retries };
        return api
          .exchange("sample", body, options)
          .then((response) => api.readAcceptance("sample", response));
      },
    }).then(
      (accepted) => this.#resultOf(call, accepted, operation),
      (error: unknown) => {
        throw this.#explained(error);
      },
    );
  }

  /** A server may drop the weights of a sampler to make room, and says only that it knows none of this name. */
  #explained(error: unknown): unknown {
    if (error instanceof NotFoundError && "samplingSessionId" in this.target) {
      error.message += `; sampler ${this.target.samplingSessionId} is gone: the server has dropped it or lost its weights. Save the weights again and make a new sampling client.`;
    }
    return error;
  }

  #headersFor(sizeBytes: number): Headers {
    const { dialect, sampleGate } = this.host;
    const isAlone = dialect.current === "proto" && !sampleGate.isBusy;
    return isAlone ? { ...sampleHeaders, ...holdHeaders({ isAlone, sizeBytes }) } : sampleHeaders;
  }

  #resultOf(call: SampleCall, accepted: Acceptance, operation: Operation): Promise<SampleResponse> {
    const { signal } = operation;
    const { requestId } = accepted;
    operation.accepted(requestId);
    return pollFuture(
      { ...accepted, requestType: "Sample", resultType: "SampleResponse", roundTripMs: 0 },
      { host: this.host, queueLog: this.#queueLog, operation, signal },
    ).then(
      (response) => {
        const named = withSequenceIds(response, accepted);
        return call.samplingParams.maxTokens === null ? this.#noteCut(named) : named;
      },
      (error: unknown) => {
        if (signal.aborted) this.#cancelAtServer(requestId);
        throw error;
      },
    );
  }

  /** Without a limit of the caller's, a server of others may have one of its own. */
  async #noteCut(response: SampleResponse): Promise<SampleResponse> {
    const { noteCutSamples } = await import("../../session/silences.js");
    await noteCutSamples(this.host, response);
    return response;
  }

  /** An abandoned sample takes the place of others; some servers offer to cancel it. */
  #cancelAtServer(requestId: string): void {
    const { api, parts } = this.host;
    if (!hasFlag(parts.dynamicConfig.current, "sample_cancel_enabled")) return;
    parts.farewells.send((signal) =>
      api.call("cancelFuture", { requestId }, { signal, maxRetries: 1, timeoutMs: 30_000 }),
    );
  }
}

/**
 * The receipt names the sequences; servers before 0.26 name none. A result that came in place of a receipt is of a
 * server of this project, which names sequences by request and place.
 */
function withSequenceIds(
  response: SampleResponse,
  { requestId, outcome, sampleSequenceIds: ids }: Acceptance,
): SampleResponse {
  const { sequences } = response;
  if (!ids && !outcome) return response;
  if (ids && ids.length !== sequences.length) {
    throw new ResultError(
      requestId,
      `The server named ${ids.length} sequences and returned ${sequences.length}.`,
    );
  }
  nameSequences(sequences, (index) => ids?.[index] ?? `${requestId}-${index}`);
  return response;
}

function nameOfTarget(target: SampleTarget): string {
  if ("samplingSessionId" in target) return target.samplingSessionId;
  return "baseModel" in target ? target.baseModel : target.modelPath;
}

const maxSamplers = 100;

/** Makes samples of a model that the request names itself; nothing is opened at the server for it. */
export function samplerWithoutSession(connection: Connection, given: SampleTarget): Sampler {
  const target =
    "baseModel" in given ? { baseModel: connection.parts.nameModel(given.baseModel) } : given;
  const samplers = connection.shared(newSamplers);
  const key = JSON.stringify(target);
  const sampler = samplers.get(key) ?? new Sampler(connection, target, completeRetryConfig());
  const oldest = samplers.size >= maxSamplers ? samplers.keys().next().value : undefined;
  if (oldest !== undefined) samplers.delete(oldest);
  samplers.set(key, sampler);
  return sampler;
}

function newSamplers(): Map<string, Sampler> {
  return new Map();
}

/** Refusals in a row that are not worth a line in the log. */
const quietRefusals = 3;

/** A sample to be submitted. */
export interface Dispatch<T> {
  readonly sizeBytes: number;
  readonly encode: () => EncodedBody;
  readonly send: (body: EncodedBody, retries: CallRetries) => Promise<T>;
}

/**
 * Submits one sample within the limits of its session. 429, and 402 while the account is unpaid, mean "later": the
 * request keeps its number and its place and is sent again when the pause of all samples is over.
 */
export async function dispatchSample<T>(
  host: Connection,
  operation: Operation,
  { sizeBytes, encode, send }: Dispatch<T>,
): Promise<T> {
  const { sampleGate, runtime } = host;
  const { clock } = runtime;
  const { signal } = operation;
  const startedAt = clock.now();
  const permit = await sampleGate.enter(sizeBytes, signal);
  try {
    const enteredAt = clock.now();
    operation.add("waitMs", enteredAt - startedAt);
    // Encoded only now, so that requests that wait in line do not hold a body each.
    const body = encode();
    const sentAt = clock.now();
    operation.add("encodeMs", sentAt - enteredAt);
    const accepted = await send(body, {
      host,
      operation,
      gate: () => (sampleGate.isBackingOff ? sampleGate.waitForBackoff(signal) : undefined),
      ownPauseMs: (error, failures) => holdBack(host, operation, sizeBytes, error, failures),
    });
    operation.spent("submitMs", sentAt);
    return accepted;
  } finally {
    sampleGate.leave(permit);
  }
}

/** Holds all samples back when the server asks for it; the gate makes them wait. */
function holdBack(
  { billing, sampleGate, runtime }: Connection,
  operation: Operation,
  sizeBytes: number,
  error: APIStatusError,
  failures: number,
): number | null | undefined {
  const { status, message, headers } = error;
  if (status !== 429 && status !== 402) return undefined;
  if (status === 402 && !billing.shouldPause(message)) return null;
  const pauseMs = sampleGate.backOff(sizeBytes, askedDelayMs(headers, runtime.clock.wallTime()));
  operation.failedAttempt(toAttempt(error, pauseMs));
  operation.lastAnswer = { status, message, time: runtime.clock.wallTime() };
  operation.heldBack(message);
  const report = { endpoint: "sample", by: "sample", status, message, delayMs: pauseMs } as const;
  runtime.retries.report(report, { isRepeated: failures >= quietRefusals });
  return 0;
}
