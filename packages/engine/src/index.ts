export { EngineError, type EngineErrorCategory } from "./errors.js";
export {
  parseModelConfig,
  type Architecture,
  type LayerKind,
  type ModelConfig,
  type RopeConfig,
  type RopeScaling,
  type Rotation,
} from "./files/model-config.js";
export { openModelFolder, readModelConfig, type ModelFolder } from "./files/model-folder.js";
export type { DigitCount, Int8Precision, Precision } from "./files/precision.js";
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
  loraTargetsOf,
  type LoraAdapter,
  type NamedTensor,
  type NamedTensors,
  type OptimizerState,
} from "./files/peft/adapter.js";
export { readOptimizer } from "./files/peft/optimizer-file.js";
export { readAdapter, type AdapterBase } from "./files/peft/read-adapter.js";
export {
  isCompleteCheckpoint,
  writeAdapter,
  type WriteAdapterOptions,
} from "./files/peft/write-adapter.js";
export { Adapter, type AdapterProperties } from "./adapter.js";
export {
  loadAdapter,
  saveAdapter,
  type LoadAdapterOptions,
  type SaveAdapterOptions,
} from "./adapter-folder.js";
export { BaseModel, type AdapterOptions, type SampleRequest } from "./base-model.js";
export type { DeviceChoice, EngineDevice } from "./device-choice.js";
export {
  Engine,
  type CreateModelOptions,
  type EngineOptions,
  type LoadModelOptions,
  type PrecisionOptions,
} from "./engine.js";
export { embeddedModelFolder, embeddedModelId, findModel } from "./find-model.js";
export { FullTuning } from "./full-tuning.js";
export type { LoadProgress } from "./model/model-weights.js";
export type { DeviceName } from "./execution/device.js";
export type { DeviceTimes } from "./runtime/device-times.js";
export type { Int8Support } from "./model/int8-probe.js";
export {
  estimateMemory,
  type EstimateOptions,
  type MemoryEstimate,
} from "./runtime/memory-estimate.js";
export { machineBytes } from "./runtime/machine-memory.js";
export type { StepMetrics } from "./runtime/protocol.js";
export type { CheckedPart, DeviceCheck } from "./runtime/self-check.js";
export type { Grammar, Rule } from "./constrain/grammar.js";
export type { TopTokens } from "./sample/reported-logprobs.js";
export type { SampleConstraint, SampleOptions } from "./sample/request.js";
export type { SampleResult, TokenEvent } from "./sample/sample-job.js";
export type { Sample, StopReason } from "./sample/sequence.js";
export { Snapshot } from "./snapshot.js";
export { TrainedModel, type PassOptions, type StateOptions } from "./trained-model.js";
export type { AdamOptions } from "./train/adam.js";
export type { Datum, LossInput } from "./train/datum.js";
export type { LossName } from "./train/losses.js";
export type { Metrics } from "./train/metrics.js";
export type { ParameterExport } from "./train/parameter-state.js";
export type { LossSettings } from "./train/prepare-data.js";
export type { DatumOutput, PassProgress, PassResult } from "./train/pass.js";
