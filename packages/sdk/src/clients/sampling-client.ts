import { needed, option, type OptionsOf } from "../errors/check-options.js";
import type { ApiFuture } from "../futures/api-future.js";
import type { OperationOptions } from "../futures/operation.js";
import type { RuntimeOptions } from "../runtime/runtime.js";
import type { Tokenizer } from "@tinker-ts/hub";
import type { ConnectionOptions } from "../session/connection-plan.js";
import { describeFacts, inspectSymbol } from "../types/inspect.js";
import type { ModelInputLike } from "../types/model-input.js";
import type { SamplingExtensions } from "../types/sampling-extensions.js";
import type { SampleResponse, SamplingParamsInput } from "../types/sampling.js";
import type { TensorData, TensorDataInit } from "../types/tensor-data.js";
import type { RetryConfig } from "./sampling/retry-handler.js";
import type { SampleStream } from "./sampling/sample-stream.js";
import type { SamplingClientState } from "./sampling/transfer-state.js";

/** The fields of `SampleOptions`. */
export const sampleOptions = {
  /** What to continue: token ids, or pieces of text, pictures and audio. */
  prompt: needed<ModelInputLike>(),
  /**
   * How tokens are drawn.
   * @default {}
   */
  samplingParams: option<SamplingParamsInput & SamplingExtensions>(),
  /**
   * How many continuations of the prompt.
   * @default 1
   */
  numSamples: option<number>(),
  /**
   * Also returns the logprob of every prompt token.
   * @default false
   */
  includePromptLogprobs: option<boolean>(),
  /**
   * Also returns this many most probable tokens at every prompt position.
   * @default 0
   */
  topkPromptLogprobs: option<number>(),
  /**
   * Also returns this many most probable tokens at every sampled position, best first, as `topkLogprobs` of each
   * sequence; tinker-ts servers give up to 20.
   * @default 0
   */
  topkSampleLogprobs: option<number>(),
  /**
   * Also scores these token ids at prompt positions: int64 of shape `[prompt length - 1, K]`, dense or sparse (CSR), with
   * row i for prompt token i + 1. -1 asks for nothing. The scores come back in the same shape and layout.
   */
  targetPromptLogprobs: option<TensorData | TensorDataInit>(),
  /**
   * Also draws this many tokens, with replacement and at the temperature of the sample, in place of every prompt token
   * but the first.
   * @default 0
   */
  promptAltTokensK: option<number>(),
  /**
   * Scores only this many tokens at the end of the prompt, which spares the server from reading again what it has cached; goes
   * with `includePromptLogprobs`.
   * @default all but the first
   */
  promptLogprobsLastN: option<number>(),
  /**
   * Turns tokens into the `text` of sequences; null leaves texts out.
   * @default the tokenizer of the model, once `getTokenizer` of this client or of its training client gave it
   */
  tokenizer: option<Tokenizer | null>(),
};

/** What to sample. */
export interface SampleOptions extends OperationOptions, OptionsOf<typeof sampleOptions> {}

/** How a prompt is scored. */
export interface ComputeLogprobsOptions extends OperationOptions {
  /**
   * Scores only this many tokens at the end of the prompt; the others have null.
   * @default all but the first
   */
  readonly promptLogprobsLastN?: number | undefined;
}

/** What to sample token by token. */
export interface StreamOptions extends SampleOptions {
  /**
   * Turns tokens into text; null leaves texts out.
   * @default the tokenizer of the model, where one can be had
   */
  readonly tokenizer?: Tokenizer | null | undefined;
}

/** How a sampler is reached by its handle. */
export interface SamplerHandleOptions
  extends Omit<ConnectionOptions, "sideThread">, RuntimeOptions {
  /** How samples are tried again. */
  readonly retryConfig?: RetryConfig | undefined;
}

/**
 * Samples from one set of weights. Made by a `ServiceClient` or a `TrainingClient`. Any number of
 * samples may be asked for at once; limits and retries are seen to inside.
 */
export abstract class SamplingClient implements AsyncDisposable {
  /** Rebuilds a client from what `transfer` gave, in another thread or process. */
  static async receive(
    state: SamplingClientState,
    options: RuntimeOptions = {},
  ): Promise<SamplingClient> {
    const { receiveSamplingClient } = await import("./sampling/receive-sampling-client.js");
    return receiveSamplingClient(state, options);
  }

  /**
   * Makes a client for the sampler behind a handle, of `getSamplerHandle` here or in Python. It has numbers of its own, so
   * that any number of processes may use one handle, and this process's credential.
   */
  static async fromSamplerHandle(
    handle: string,
    options: SamplerHandleOptions = {},
  ): Promise<SamplingClient> {
    const { openSamplerHandle } = await import("./sampling/receive-sampling-client.js");
    return openSamplerHandle(handle, options);
  }

  /** The server's id of this sampler. */
  abstract get samplingSessionId(): string;

  /** Continues a prompt. */
  abstract sample(options: SampleOptions): ApiFuture<SampleResponse>;

  /**
   * Continues a prompt and gives out tokens as they are sampled. Works with every server: one that cannot
   * stream delivers all tokens at the end, and `isLive` says so.
   */
  abstract stream(options: StreamOptions): SampleStream;

  /** The logprob of every prompt token under the model; null where there is none (the first). */
  abstract computeLogprobs(
    prompt: ModelInputLike,
    options?: ComputeLogprobsOptions,
  ): ApiFuture<(number | null)[]>;

  /** The name of the model that the weights belong to. */
  abstract getBaseModel(options?: OperationOptions): Promise<string>;

  /** The tokenizer of the model. */
  abstract getTokenizer(options?: OperationOptions): Promise<Tokenizer>;

  /** What another thread needs to sample in the same session, as plain data; holds the credential. */
  abstract transfer(): SamplingClientState;

  /** A text by which other processes sample from the same weights; holds no credential. */
  abstract getSamplerHandle(): string;

  /** Which sampler and session it is about, for logs; never holds the credential. */
  abstract toJSON(): Readonly<Record<string, unknown>>;

  /** How it is printed. */
  [inspectSymbol](): string {
    return describeFacts("SamplingClient", this.toJSON());
  }

  /** Frees what a received client holds; one that was created lives and ends with its service. */
  abstract close(): Promise<void>;

  /** Closes the client at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
