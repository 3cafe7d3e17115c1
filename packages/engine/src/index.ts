export { EngineError, type EngineErrorCategory } from "./errors.js";
export { parseModelConfig, type ModelConfig, type RopeConfig } from "./files/model-config.js";
export { openModelFolder, readModelConfig, type ModelFolder } from "./files/model-folder.js";
export { SafetensorsFile, type ReadBytesOptions } from "./files/safetensors.js";
export {
  writeSafetensors,
  type TensorData,
  type TensorToWrite,
  type WriteSafetensorsOptions,
} from "./files/safetensors-writer.js";
export type { SafetensorsDtype, SafetensorsEntry } from "./files/safetensors-header.js";
export type { StoredDtype, StoredTensor, WeightSource } from "./files/weight-source.js";
