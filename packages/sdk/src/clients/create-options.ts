import { needed, option, type OptionsOf } from "../errors/check-options.js";
import type { OperationOptions } from "../futures/operation.js";
import type { RetryConfig } from "./sampling/retry-handler.js";
import type { SamplingSource } from "./sampling-source.js";
import type { UserMetadata } from "./training/make-training-client.js";

/** The fields of `CreateLoraTrainingClientOptions`. */
export const loraOptions = {
  /** The name of a model that the server supports. */
  baseModel: needed<string>(),
  /**
   * Rank of the adapter: how much it can learn, and its size.
   * @default 32
   */
  rank: option<number>(),
  /** Makes the adapter's first weights repeatable. */
  seed: option<number | bigint>(),
  /**
   * Whether the feed-forward layers are adapted.
   * @default true
   */
  trainMlp: option<boolean>(),
  /**
   * Whether the attention layers are adapted.
   * @default true
   */
  trainAttn: option<boolean>(),
  /**
   * Whether the output layer is adapted.
   * @default true
   */
  trainUnembed: option<boolean>(),
  /** Facts about the run, kept with it. */
  userMetadata: option<UserMetadata>(),
};

/** What kind of adapter to train, and on which model. */
export interface CreateLoraTrainingClientOptions
  extends OperationOptions, OptionsOf<typeof loraOptions> {}

/** The fields of `CreateFromStateOptions`. */
export const fromStateOptions = {
  /** Another model of the same shape, such as one with a longer context. */
  baseModel: option<string>(),
  /** Facts about the new run, kept with it. */
  userMetadata: option<UserMetadata>(),
  /** A credential of the checkpoint's owner, when the caller is not the owner. */
  weightsAccessToken: option<string>(),
};

/** How training goes on from a checkpoint. */
export interface CreateFromStateOptions
  extends OperationOptions, OptionsOf<typeof fromStateOptions> {}

/** The fields of `CreateSamplingClientOptions`. */
export const samplingClientOptions = {
  /** How samples are tried again. */
  retryConfig: option<RetryConfig>(),
};

/** What to sample from, and how. */
export interface CreateSamplingClientOptions
  extends OperationOptions, SamplingSource, OptionsOf<typeof samplingClientOptions> {}

/** The fields of `CopyWeightsOptions`. */
export const copyWeightsOptions = {
  /** Seconds until the copy is deleted; it is kept by default, whatever becomes of the source. */
  ttlSeconds: option<number | null>(),
  /** A credential of the source's owner, when the caller is not the owner. */
  weightsAccessToken: option<string>(),
};

/** How a checkpoint is copied. */
export interface CopyWeightsOptions
  extends OperationOptions, OptionsOf<typeof copyWeightsOptions> {}

/** How a program ended. */
export type SessionStatus = "success" | "errored" | "interrupted";

/** The fields of `CloseOptions`. */
export const closeOptions = {
  /**
   * How the program ended, for the server's records.
   * @default "success", or what ended the program as far as it was seen
   */
  status: option<SessionStatus>(),
  /** What happened, for people to read. */
  detail: option<string>(),
};

/** How a client is closed. */
export interface CloseOptions extends OptionsOf<typeof closeOptions> {}
