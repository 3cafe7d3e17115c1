import type { ParameterLayout } from "../model/parameter-layout.js";

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
