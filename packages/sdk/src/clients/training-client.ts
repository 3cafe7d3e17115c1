import type { ApiFuture } from "../futures/api-future.js";
import type { OperationOptions } from "../futures/operation.js";
import type { Tokenizer } from "@tinker-ts/hub";
import type { DatumLike } from "../types/datum.js";
import { describeFacts, inspectSymbol } from "../types/inspect.js";
import type {
  AdamParamsInput,
  ForwardBackwardOutput,
  GetInfoResponse,
  LossFnType,
  OptimStepResponse,
} from "../types/training.js";
import type {
  LoadWeightsResponse,
  SaveWeightsExternalResponse,
  SaveWeightsForSamplerResponse,
  SaveWeightsResponse,
} from "../types/weights.js";
import type { SamplingClient } from "./sampling-client.js";
import type {
  LoadStateOptions,
  PassOptions,
  SamplerOptions,
  SaveExternalOptions,
  SaveSamplerOptions,
  SaveStateOptions,
  TrainStepOptions,
  TrainStepResult,
} from "./training-options.js";
import type { CustomLossFn } from "./training/custom-loss.js";

/**
 * Trains one model. Made by a `ServiceClient`.
 *
 * Operations run in the order in which they are called, whether or not their results are awaited in
 * between; awaiting only at the end keeps the server busy. Arguments that cannot be used are thrown
 * back at once, before an operation takes its place in that order.
 */
export abstract class TrainingClient {
  /** The server's id of the model; also the id of its training run. */
  abstract get modelId(): string;

  /** Computes losses and logprobs without gradients. */
  abstract forward(
    data: readonly DatumLike[],
    lossFn: LossFnType,
    options?: PassOptions,
  ): ApiFuture<ForwardBackwardOutput>;

  /** Computes losses and adds their gradients to those that the next `optimStep` uses. */
  abstract forwardBackward(
    data: readonly DatumLike[],
    lossFn: LossFnType,
    options?: PassOptions,
  ): ApiFuture<ForwardBackwardOutput>;

  /**
   * Like `forwardBackward` with a loss of one's own over the logprobs of the target tokens. Takes two
   * passes; operations called later run behind both, so the loss must not wait for one of them.
   */
  abstract forwardBackwardCustom(
    data: readonly DatumLike[],
    lossFn: CustomLossFn,
    options?: OperationOptions,
  ): ApiFuture<ForwardBackwardOutput>;

  /** Changes the weights by the gradients added so far, and forgets them. */
  abstract optimStep(
    adamParams?: AdamParamsInput,
    options?: OperationOptions,
  ): ApiFuture<OptimStepResponse>;

  /**
   * One step: submits `forwardBackward` and `optimStep` together and waits for both. When the server
   * does not accept the first, the second is not sent.
   */
  abstract trainStep(
    data: readonly DatumLike[],
    lossFn: LossFnType,
    options?: TrainStepOptions,
  ): Promise<TrainStepResult>;

  /** Saves weights and optimizer state under a name; the result holds the path to load them from. */
  abstract saveState(name: string, options?: SaveStateOptions): ApiFuture<SaveWeightsResponse>;

  /** Loads weights; the optimizer starts anew. */
  abstract loadState(path: string, options?: LoadStateOptions): ApiFuture<LoadWeightsResponse>;

  /** Loads weights and optimizer state. */
  abstract loadStateWithOptimizer(
    path: string,
    options?: LoadStateOptions,
  ): ApiFuture<LoadWeightsResponse>;

  /** Saves weights for sampling under a name; the result holds their path. */
  abstract saveWeightsForSampler(
    name: string,
    options?: SaveSamplerOptions,
  ): ApiFuture<SaveWeightsForSamplerResponse>;

  /**
   * Saves the weights as files for use elsewhere, where the server offers that; `getExternalWeightsUrls` of a REST client
   * has their addresses.
   */
  abstract saveWeightsExternal(
    name: string,
    options?: SaveExternalOptions,
  ): ApiFuture<SaveWeightsExternalResponse>;

  /** Samples from the weights as they are at this point of the order; nothing is kept under a name. */
  abstract saveWeightsAndGetSamplingClient(options?: SamplerOptions): ApiFuture<SamplingClient>;

  /** A client that samples from saved weights. */
  abstract createSamplingClient(
    modelPath: string,
    options?: SamplerOptions,
  ): Promise<SamplingClient>;

  /** The description of the model. */
  abstract getInfo(options?: OperationOptions): Promise<GetInfoResponse>;

  /** The tokenizer of the model. */
  abstract getTokenizer(options?: OperationOptions): Promise<Tokenizer>;

  /** The page of the run in the console of the hosted service; null for other servers. */
  abstract getConsoleUrl(): string | null;

  /** Which model and session it is about, for logs. */
  abstract toJSON(): Readonly<Record<string, unknown>>;

  /** How it is printed. */
  [inspectSymbol](): string {
    return describeFacts("TrainingClient", this.toJSON());
  }
}
