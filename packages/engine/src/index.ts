export { EngineError, type EngineErrorCategory } from "./errors.js";
export type { ModelConfig, RopeConfig } from "./files/model-config.js";
