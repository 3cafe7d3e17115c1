export { EngineError, type EngineErrorCategory } from "./errors.js";
export { resolveModel, type ResolvedModel, type ResolveModelOptions } from "./files/hub.js";
export type { HubFiles } from "./files/hub/files.js";
export type { DownloadProgress } from "./files/hub/progress.js";
export type { RetryPolicy } from "./files/hub/retry.js";
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
export type { ChatMessage, ChatTemplates, RenderChatOptions } from "./tokenizer/chat-template.js";
export { IncrementalDecoder } from "./tokenizer/incremental-decoder.js";
export { loadTokenizer, parseTokenizer, type TokenizerFiles } from "./tokenizer/load-tokenizer.js";
export { Tokenizer, type DecodeOptions, type EncodeOptions } from "./tokenizer/tokenizer.js";
export type { NamedToken, NamedTokens } from "./tokenizer/vocabulary.js";
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
