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
export { mergeAdapter, type MergeOptions, type MergeProgress } from "./files/merge.js";
export {
  loraModules,
  type LoraFlags,
  type LoraModule,
  type LoraTarget,
} from "./files/lora-modules.js";
export {
  adapterTensorShapes,
  type LoraAdapter,
  type NamedTensor,
  type OptimizerState,
} from "./files/peft/adapter.js";
export { readOptimizer } from "./files/peft/optimizer-file.js";
export { readAdapter, type AdapterBase } from "./files/peft/read-adapter.js";
export {
  isCompleteCheckpoint,
  writeAdapter,
  type WriteAdapterOptions,
} from "./files/peft/write-adapter.js";
