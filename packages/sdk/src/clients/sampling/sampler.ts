import type { Operation } from "../../futures/operation.js";
import { pollFuture } from "../../futures/poll-future.js";
import { QueueStateLog } from "../../session/queue-state-log.js";
import type { Session } from "../../session/session.js";
import { jsonBody } from "../../transport/api.js";
import type { SampleResponse } from "../../types/sampling.js";
import { encodeJson } from "../../wire/json-codec.js";
import { estimatePromptBytes } from "../byte-estimate.js";
import type { CompleteRetryConfig } from "../retry-config.js";
import { dispatchSample } from "./dispatch-sample.js";
import type { RetryHandler } from "./retry-handler.js";
import { retryHandlerFor } from "./retry-handlers.js";
import type { SampleCall } from "./sample-call.js";

/** Makes samples of one sampling session. */
export class Sampler {
  readonly session: Session;
  readonly samplingSessionId: string;
  readonly retryConfig: CompleteRetryConfig;
  readonly #handler: RetryHandler;
  readonly #queueLog: QueueStateLog;
  #nextSeqId: number;

  constructor(
    session: Session,
    samplingSessionId: string,
    retryConfig: CompleteRetryConfig,
    firstSeqId = 0,
  ) {
    this.session = session;
    this.samplingSessionId = samplingSessionId;
    this.retryConfig = retryConfig;
    this.#handler = retryHandlerFor(session, samplingSessionId, retryConfig);
    this.#nextSeqId = firstSeqId;
    const subject = { activity: "Sampling", name: samplingSessionId } as const;
    this.#queueLog = new QueueStateLog(session.runtime, subject);
  }

  /** Samples until it succeeds. */
  sampleWithRetries(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    return this.#handler.run({ attempt: () => this.sampleOnce(call, operation), operation });
  }

  /** Hands one request in, under a number of its own, and waits for its result. */
  async sampleOnce(call: SampleCall, operation: Operation): Promise<SampleResponse> {
    const { session, samplingSessionId } = this;
    const seqId = this.#nextSeqId++;
    const sizeBytes = estimatePromptBytes(call.prompt);
    const { requestId } = await dispatchSample(session, operation, sizeBytes, () =>
      jsonBody(encodeJson("SampleRequest", { ...call, samplingSessionId, seqId })),
    );
    operation.accepted(requestId);
    const { connection, telemetry } = session;
    return pollFuture(
      { requestId, requestType: "Sample", resultType: "SampleResponse", roundTripMs: 0 },
      { connection, telemetry, queueLog: this.#queueLog, operation, signal: operation.signal },
    );
  }
}
