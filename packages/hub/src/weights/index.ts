// Helpers for the files of models and adapters, shared by this repository's packages. They are not meant for others: names
// here change without a new major version.
export { EngineError, type EngineErrorCategory } from "./engine-error.js";
export {
  parseModelConfig,
  type Architecture,
  type LayerKind,
  type MambaConfig,
  type Mixer,
  type ModelConfig,
  type QueryGrowth,
  type RopeConfig,
  type RopeScaling,
  type Rotation,
} from "./model-config.js";
export {
  allLayerKinds,
  feedForwardOf,
  kindKey,
  layerKind,
  layerWindows,
  mixerOf,
} from "./layer-kinds.js";
export { layerTensors, type LayerTensor, type LayerTensorKey } from "./layer-tensors.js";
export { openModelFolder, readModelConfig, type ModelFolder } from "./model-folder.js";
export {
  embeddingName,
  expectedTensors,
  finalNormName,
  inLayer,
  unembeddingName,
} from "./tensor-names.js";
export { isStoredDtype, SafetensorsFile, type ReadBytesOptions } from "./safetensors.js";
export type { SafetensorsDtype, SafetensorsEntry } from "./safetensors-header.js";
export {
  writeSafetensors,
  type TensorData,
  type TensorToWrite,
  type WriteSafetensorsOptions,
} from "./safetensors-writer.js";
export type { StoredDtype, StoredTensor, WeightSource } from "./weight-source.js";
export { decodeFloats, storedElementBytes } from "./float-formats.js";
export { openShardFiles, type WeightShards } from "./weight-shards.js";
export { readJsonObject, writeFolderAtomically } from "./file-helpers.js";
export { addLowRank } from "./low-rank.js";
export { writeMergedModel, type WeightChange } from "./merged-model.js";
export { mergeAdapter, type MergeOptions, type MergeProgress } from "./merge.js";
export { loraModules, type LoraFlags, type LoraModule, type LoraTarget } from "./lora-modules.js";
export {
  adapterTensorShapes,
  loraTargetsOf,
  loraTensorNames,
  parseLoraTensorName,
  type LoraAdapter,
  type NamedTensor,
  type NamedTensors,
  type OptimizerState,
} from "./peft/adapter.js";
export { readOptimizer } from "./peft/optimizer-file.js";
export { formatPeftConfig, parsePeftConfig, type PeftConfig } from "./peft/config.js";
export {
  adapterConfigFile,
  adapterWeightsFile,
  readAdapter,
  type AdapterBase,
} from "./peft/read-adapter.js";
export {
  isCompleteCheckpoint,
  writeAdapter,
  type WriteAdapterOptions,
} from "./peft/write-adapter.js";
