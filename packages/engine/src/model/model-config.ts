import type { ModelConfig as StoredModelConfig } from "@tinker-ts/hub/weights";
import type { Int8Precision } from "./precision.js";

/** A model as the engine computes it: what its files describe, and in which precision. */
export interface ModelConfig extends StoredModelConfig {
  /** @default 32-bit floats */
  readonly precision?: Int8Precision;
}
