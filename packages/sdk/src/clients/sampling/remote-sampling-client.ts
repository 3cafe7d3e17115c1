import { ResultError } from "../../errors/request-failed-error.js";
import { ApiFuture } from "../../futures/api-future.js";
import { checkBounds, Operation, type OperationOptions } from "../../futures/operation.js";
import type { OperationName } from "../../runtime/events.js";
import type { Session } from "../../session/session.js";
import type { Tokenizer } from "@tinker-ts/hub";
import type { ModelInputLike } from "../../types/model-input.js";
import type { GetSamplerResponse, SampleResponse } from "../../types/sampling.js";
import { bounded } from "../bounded.js";
import { completeRetryConfig, type RetryConfig } from "../retry-config.js";
import { SamplingClient, type SampleOptions } from "../sampling-client.js";
import { checkSampleCall } from "./sample-call.js";
import { Sampler } from "./sampler.js";
import { transferState, type SamplingClientState } from "./transfer-state.js";

/** Samples at a server. */
export class RemoteSamplingClient extends SamplingClient {
  readonly #sampler: Sampler;
  readonly #onClose: () => Promise<void>;

  constructor(
    session: Session,
    samplingSessionId: string,
    retryConfig?: RetryConfig,
    options: { firstSeqId?: number; onClose?: () => Promise<void> } = {},
  ) {
    super();
    const config = completeRetryConfig(retryConfig);
    this.#sampler = new Sampler(session, samplingSessionId, config, options.firstSeqId);
    this.#onClose = options.onClose ?? (() => Promise.resolve());
  }

  override get samplingSessionId(): string {
    return this.#sampler.samplingSessionId;
  }

  override sample(options: SampleOptions): ApiFuture<SampleResponse> {
    const call = checkSampleCall(options);
    const sampler = this.#sampler;
    return this.#start("sample", options, (operation) =>
      sampler.session.connection.config.sampleNoRetries
        ? sampler.sampleOnce(call, operation)
        : sampler.sampleWithRetries(call, operation),
    );
  }

  override computeLogprobs(
    prompt: ModelInputLike,
    options: OperationOptions = {},
  ): ApiFuture<(number | null)[]> {
    const samplingParams = { maxTokens: 1 };
    const call = checkSampleCall({ prompt, samplingParams, includePromptLogprobs: true });
    return this.#start("computeLogprobs", options, async (operation) => {
      const { promptLogprobs } = await this.#sampler.sampleWithRetries(call, operation);
      if (promptLogprobs) return promptLogprobs;
      throw new ResultError(
        operation.status.requestIds.at(-1) ?? "",
        "The server returned no prompt logprobs.",
      );
    });
  }

  override async getBaseModel(options: OperationOptions = {}): Promise<string> {
    return (await this.#describe(options)).baseModel;
  }

  override async getTokenizer(options: OperationOptions = {}): Promise<Tokenizer> {
    const { session } = this.#sampler;
    return bounded("getTokenizer", options, session, async (signal) => {
      const modelName = await this.getBaseModel({ signal });
      const { loadModelTokenizer } = await import("../../tokenizers/load-model-tokenizer.js");
      return loadModelTokenizer({ modelName, tokenizerId: null }, session.connection, signal);
    });
  }

  override transfer(): SamplingClientState {
    return transferState(this.#sampler);
  }

  override close(): Promise<void> {
    return this.#onClose();
  }

  #describe(options: OperationOptions): Promise<GetSamplerResponse> {
    const { session, samplingSessionId: samplerId } = this.#sampler;
    const { api } = session.connection;
    return bounded("getSampler", options, session, (signal) =>
      session.retrying(
        "getSampler",
        () => api.call("getSampler", null, { params: { samplerId }, signal }),
        { signal },
      ),
    );
  }

  #start<T>(
    name: OperationName,
    options: OperationOptions,
    work: (operation: Operation) => Promise<T>,
  ): ApiFuture<T> {
    checkBounds(options);
    const { session, samplingSessionId } = this.#sampler;
    const operation = new Operation(name, samplingSessionId, session.runtime);
    return ApiFuture.start(operation, options, session, () => work(operation));
  }
}
