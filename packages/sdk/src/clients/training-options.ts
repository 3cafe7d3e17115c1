import { option, type OptionsOf } from "../errors/check-options.js";
import type { OperationOptions } from "../futures/operation.js";
import type {
  AdamParamsInput,
  ForwardBackwardOutput,
  OptimStepResponse,
} from "../types/training.js";
import type { RetryConfig } from "./sampling/retry-handler.js";
import type { UserMetadata } from "./training/make-training-client.js";

/** The fields of `PassOptions`. */
export const passOptions = {
  /** Settings of the loss, by the loss's own names. */
  lossFnConfig: option<Readonly<Record<string, number>>>(),
};

/** How a forward or forward/backward pass is made. */
export interface PassOptions extends OperationOptions, OptionsOf<typeof passOptions> {}

/** The fields of `SaveStateOptions`. */
export const saveStateOptions = {
  /** Seconds until the checkpoint expires; it never does by default. */
  ttlSeconds: option<number | null>(),
  /** Facts about the checkpoint, kept with it. */
  userMetadata: option<UserMetadata>(),
  /**
   * Replaces a checkpoint of the same name.
   * @default false
   */
  overwrite: option<boolean>(),
};

/** How a checkpoint is saved. */
export interface SaveStateOptions extends OperationOptions, OptionsOf<typeof saveStateOptions> {}

/** How sampler weights are saved. */
export type SaveSamplerOptions = Omit<SaveStateOptions, "overwrite">;

/** How external weights are saved. */
export type SaveExternalOptions = Omit<SaveStateOptions, "overwrite" | "userMetadata">;

/** The fields of `LoadStateOptions`. */
export const loadStateOptions = {
  /** A credential of the checkpoint's owner, when the caller is not the owner. */
  weightsAccessToken: option<string>(),
};

/** How a checkpoint is loaded. */
export interface LoadStateOptions extends OperationOptions, OptionsOf<typeof loadStateOptions> {}

/** The fields of `SamplerOptions`. */
export const samplerOptions = {
  /** How its samples are tried again. */
  retryConfig: option<RetryConfig>(),
};

/** How a sampling client is made. */
export interface SamplerOptions extends OperationOptions, OptionsOf<typeof samplerOptions> {}

/** The fields of `TrainStepOptions`. */
export const trainStepOptions = {
  /** Settings of the optimizer. */
  adamParams: option<AdamParamsInput>(),
};

/** How a training step is made. */
export interface TrainStepOptions extends PassOptions, OptionsOf<typeof trainStepOptions> {}

/** The results of a training step. */
export interface TrainStepResult {
  /** The result of the pass: losses and logprobs. */
  readonly forwardBackward: ForwardBackwardOutput;
  /** The result of the optimizer step. */
  readonly optimStep: OptimStepResponse;
}
