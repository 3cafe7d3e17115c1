import type { ModelConfig as StoredModelConfig } from "@tinker-ts/hub/weights";
import type { Int8Precision } from "./precision.js";

/** A model's configuration from its files, with the engine's precision. */
export interface ModelConfig extends StoredModelConfig {
  /** @default 32-bit floats */
  readonly precision?: Int8Precision;
}
