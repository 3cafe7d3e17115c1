import type { Operation } from "../../futures/operation.js";
import { pollFuture } from "../../futures/poll-future.js";
import { QueueStateLog } from "../../session/queue-state-log.js";
import { holdHeaders, type Acceptance } from "../../transport/acceptance.js";
import type { Headers, HttpResponse } from "../../transport/message.js";
import type { SampleResponse } from "../../types/sampling.js";
import { estimatePromptBytes } from "../byte-estimate.js";
import type { CompleteRetryConfig } from "../retry-config.js";
import { dispatchSample } from "./dispatch-sample.js";
import type { RetryHandler } from "./retry-handler.js";
import { retryHandlerFor } from "./retry-handlers.js";
import { SampleBodies } from "./sample-body.js";
import type { SampleCall } from "./sample-call.js";
import { nameOfTarget, type SampleTarget, type SamplingHost } from "./sampling-host.js";

const headers = { "x-tinker-sampling-backpressure": "1" };

/** Makes samples from one set of weights. */
export class Sampler {
  readonly host: SamplingHost;
  readonly target: SampleTarget;
  readonly retryConfig: CompleteRetryConfig;
  readonly #handler: RetryHandler;
  readonly #queueLog: QueueStateLog;
  readonly #bodies: SampleBodies;
  #nextSeqId: number;

  constructor(
    host: SamplingHost,
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
    return this.host.connection.config.sampleNoRetries
      ? this.#sampleOnce(call, operation)
      : this.sampleWithRetries(call, operation);
  }

  /** Samples until it succeeds. */
  sampleWithRetries(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    return this.#handler.run({ attempt: () => this.#sampleOnce(call, operation), operation });
  }

  /** Opens a stream of tokens; rejects like any call where the server has none. */
  openStream(call: SampleCall, operation: Operation): Promise<HttpResponse> {
    const { connection } = this.host;
    const { signal } = operation;
    return dispatchSample(this.host, operation, {
      sizeBytes: estimatePromptBytes(call.prompt),
      encode: () => this.#bodies.write(call),
      send: (body) =>
        connection.api.exchange("streamSample", body, { headers, signal, streams: true }),
    });
  }

  /** Hands one request in, under a number of its own, and waits for its result. */
  #sampleOnce(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    const { api } = this.host.connection;
    const { signal } = operation;
    // Without a session there is nothing that numbers would count in.
    const seqId = "samplingSessionId" in this.target ? this.#nextSeqId++ : undefined;
    const sizeBytes = estimatePromptBytes(call.prompt);
    return dispatchSample(this.host, operation, {
      sizeBytes,
      encode: () => this.#bodies.write(call, seqId),
      send: (body) => {
        const options = { headers: this.#headersFor(sizeBytes), signal };
        return api
          .exchange("sample", body, options)
          .then((response) => api.readAcceptance("sample", response));
      },
    }).then((accepted) => this.#resultOf(accepted, operation));
  }

  #headersFor(sizeBytes: number): Headers {
    const { connection, sampleGate } = this.host;
    const isAlone = connection.dialect.current === "proto" && !sampleGate.isBusy;
    return isAlone ? { ...headers, ...holdHeaders({ isAlone, sizeBytes }) } : headers;
  }

  #resultOf(accepted: Acceptance, operation: Operation): Promise<SampleResponse> {
    const { connection, telemetry } = this.host;
    const { signal } = operation;
    operation.accepted(accepted.requestId);
    return pollFuture(
      { ...accepted, requestType: "Sample", resultType: "SampleResponse", roundTripMs: 0 },
      { connection, telemetry, queueLog: this.#queueLog, operation, signal },
    );
  }
}
