import type { ParameterLayout } from "../model/parameter-layout.js";
import type { PreparedDatum } from "./datum.js";
import type { LossName } from "./losses.js";
import type { Metrics } from "./metrics.js";

/** Log-probabilities of a datum's targets. */
export interface DatumOutput {
  readonly logprobs: Float32Array;
  readonly shape: readonly number[];
}

/** The result of a forward or forward-backward call. */
export interface PassResult {
  readonly outputs: readonly DatumOutput[];
  readonly metrics: Metrics;
}

/** Progress of a call. */
export interface PassProgress {
  readonly doneTokens: number;
  readonly totalTokens: number;
}

/** Parameters in use during a call. */
export interface PassParameters {
  readonly layout: ParameterLayout;
  readonly values: Float32Array;
  readonly rank: number;
  /** alpha / rank */
  readonly scale: number;
  /** Changes whenever the values do. */
  readonly version: number;
}

/** One forward or forward-backward call. */
export interface PassRequest {
  readonly data: readonly PreparedDatum[];
  readonly loss: LossName;
  readonly parameters: PassParameters;
  /** Receives the gradient; absent for a forward call. */
  readonly gradient?: Float32Array;
  readonly pause: () => Promise<void>;
  readonly onProgress?: ((progress: PassProgress) => void) | undefined;
}
