import { ArgumentError } from "../errors/argument-error.js";
import { ResultError } from "../errors/request-failed-error.js";
import { ApiFuture } from "../futures/api-future.js";
import { checkBounds, Operation, type OperationOptions } from "../futures/operation.js";
import type { OperationName } from "../runtime/events.js";
import type { RuntimeOptions } from "../runtime/runtime.js";
import type { Session } from "../session/session.js";
import type { Tokenizer } from "../tokenizers/tokenizer.js";
import { ModelInput, type ModelInputLike } from "../types/model-input.js";
import type { SampleResponse, SamplingParamsInput } from "../types/sampling.js";
import { checkSamplingParams } from "../types/validate.js";
import { completeRetryConfig, type RetryConfig } from "./retry-config.js";
import { Sampler, type SampleCall } from "./sampling/sampler.js";
import type { SamplingClientState } from "./sampling/transfer-state.js";

/** What to sample. */
export interface SampleOptions extends OperationOptions {
  readonly prompt: ModelInputLike;
  /** @default {} */
  readonly samplingParams?: SamplingParamsInput | undefined;
  /**
   * How many continuations of the prompt.
   * @default 1
   */
  readonly numSamples?: number | undefined;
  /**
   * Also returns the logprob of every prompt token.
   * @default false
   */
  readonly includePromptLogprobs?: boolean | undefined;
  /**
   * Also returns this many most probable tokens at every prompt position.
   * @default 0
   */
  readonly topkPromptLogprobs?: number | undefined;
}

/** Samples from one set of weights. Made by a `ServiceClient` or a `TrainingClient`. */
export class SamplingClient implements AsyncDisposable {
  readonly #sampler: Sampler;
  readonly #onClose: () => Promise<void>;

  /** @internal */
  constructor(
    session: Session,
    samplingSessionId: string,
    retryConfig?: RetryConfig,
    options: { firstSeqId?: number; onClose?: () => Promise<void> } = {},
  ) {
    const config = completeRetryConfig(retryConfig);
    this.#sampler = new Sampler(session, samplingSessionId, config, options.firstSeqId);
    this.#onClose = options.onClose ?? (() => Promise.resolve());
  }

  /** Rebuilds a client from what `transfer` gave, in another thread or process. */
  static async receive(
    state: SamplingClientState,
    runtime: RuntimeOptions = {},
  ): Promise<SamplingClient> {
    const { receiveSession } = await import("./sampling/receive-session.js");
    const { session, firstSeqId, release } = await receiveSession(state, runtime);
    return new SamplingClient(session, state.samplingSessionId, undefined, {
      firstSeqId,
      onClose: release,
    });
  }

  /** The server's id of this sampler. */
  get samplingSessionId(): string {
    return this.#sampler.samplingSessionId;
  }

  /** Continues a prompt. */
  sample(options: SampleOptions): ApiFuture<SampleResponse> {
    const call = checkCall(options);
    const sampler = this.#sampler;
    return this.#start("sample", options, (operation) =>
      sampler.session.connection.config.sampleNoRetries
        ? sampler.sampleOnce(call, operation)
        : sampler.sampleWithRetries(call, operation),
    );
  }

  /** The logprob of every prompt token under the model; null where there is none (the first). */
  computeLogprobs(
    prompt: ModelInputLike,
    options: OperationOptions = {},
  ): ApiFuture<(number | null)[]> {
    const samplingParams = { maxTokens: 1 };
    const call = checkCall({ prompt, samplingParams, includePromptLogprobs: true });
    return this.#start("computeLogprobs", options, async (operation) => {
      const { promptLogprobs } = await this.#sampler.sampleWithRetries(call, operation);
      if (promptLogprobs) return promptLogprobs;
      throw new ResultError(
        operation.status.requestIds.at(-1) ?? "",
        "The server returned no prompt logprobs.",
      );
    });
  }

  /** The name of the model that the weights belong to. */
  async getBaseModel(options: OperationOptions = {}): Promise<string> {
    const { describeSampler } = await import("./sampling/describe-sampler.js");
    return (await describeSampler(this.#sampler, options)).baseModel;
  }

  /** The tokenizer of the model. */
  async getTokenizer(options: OperationOptions = {}): Promise<Tokenizer> {
    const modelName = await this.getBaseModel(options);
    const { loadModelTokenizer } = await import("../tokenizers/load-model-tokenizer.js");
    return loadModelTokenizer({ modelName, tokenizerId: null }, this.#sampler.session.connection);
  }

  /** What another thread needs to sample in the same session; holds the credential. */
  async transfer(): Promise<SamplingClientState> {
    const { transferState } = await import("./sampling/transfer-state.js");
    return transferState(this.#sampler);
  }

  /** Frees what a received client holds; one that was created lives and ends with its service. */
  close(): Promise<void> {
    return this.#onClose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
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

function checkCall(options: SampleOptions): SampleCall {
  const { numSamples = 1, topkPromptLogprobs = 0 } = options;
  if (!Number.isSafeInteger(numSamples) || numSamples < 1) {
    throw new ArgumentError("numSamples", `must be a whole number of 1 or more, got ${numSamples}`);
  }
  if (!Number.isSafeInteger(topkPromptLogprobs) || topkPromptLogprobs < 0) {
    throw new ArgumentError("topkPromptLogprobs", "must be a whole number of 0 or more");
  }
  const prompt = ModelInput.from(options.prompt);
  if (prompt.chunks.length === 0) {
    throw new ArgumentError("prompt", "must not be empty; pass token ids or chunks");
  }
  return {
    prompt,
    numSamples,
    samplingParams: checkSamplingParams(options.samplingParams ?? {}),
    promptLogprobs: options.includePromptLogprobs ?? false,
    topkPromptLogprobs,
  };
}
