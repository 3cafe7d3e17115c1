import type { OperationOptions } from "../futures/operation.js";
import type {
  AdamParamsInput,
  ForwardBackwardOutput,
  OptimStepResponse,
} from "../types/training.js";
import type { RetryConfig } from "./retry-config.js";

/** How a forward or forward/backward pass is made. */
export interface PassOptions extends OperationOptions {
  /** Settings of the loss, by the loss's own names. */
  readonly lossFnConfig?: Readonly<Record<string, number>> | undefined;
}

/** How a checkpoint is saved. */
export interface SaveStateOptions extends OperationOptions {
  /** Seconds until the checkpoint expires; it never does by default. */
  readonly ttlSeconds?: number | null | undefined;
  /**
   * Replaces a checkpoint of the same name.
   * @default false
   */
  readonly overwrite?: boolean | undefined;
}

/** How sampler weights are saved. */
export type SaveSamplerOptions = Omit<SaveStateOptions, "overwrite">;

/** How a checkpoint is loaded. */
export interface LoadStateOptions extends OperationOptions {
  /** A credential of the checkpoint's owner, when that is somebody else. */
  readonly weightsAccessToken?: string | undefined;
}

/** How a sampling client is made. */
export interface SamplerOptions extends OperationOptions {
  /** How its samples are tried again. */
  readonly retryConfig?: RetryConfig | undefined;
}

/** How a training step is made. */
export interface TrainStepOptions extends PassOptions {
  /** Settings of the optimizer. */
  readonly adamParams?: AdamParamsInput | undefined;
}

/** The results of a training step. */
export interface TrainStepResult {
  /** The result of the pass: losses and logprobs. */
  readonly forwardBackward: ForwardBackwardOutput;
  /** The result of the optimizer step. */
  readonly optimStep: OptimStepResponse;
}
