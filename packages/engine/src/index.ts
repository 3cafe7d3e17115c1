export { EngineError, type EngineErrorCategory } from "./errors.js";
export {
  adapterTensorShapes,
  isCompleteCheckpoint,
  loraModules,
  loraTargetsOf,
  mergeAdapter,
  openModelFolder,
  parseModelConfig,
  readAdapter,
  readModelConfig,
  readOptimizer,
  SafetensorsFile,
  writeAdapter,
  writeSafetensors,
  type AdapterBase,
  type Architecture,
  type LayerKind,
  type LoraAdapter,
  type LoraFlags,
  type LoraModule,
  type LoraTarget,
  type MergeOptions,
  type MergeProgress,
  type ModelFolder,
  type NamedTensor,
  type NamedTensors,
  type OptimizerState,
  type ReadBytesOptions,
  type RopeConfig,
  type RopeScaling,
  type Rotation,
  type SafetensorsDtype,
  type SafetensorsEntry,
  type StoredDtype,
  type StoredTensor,
  type TensorData,
  type TensorToWrite,
  type WeightSource,
  type WriteAdapterOptions,
  type WriteSafetensorsOptions,
} from "@tinker-ts/hub/weights";
export { Adapter, type AdapterProperties } from "./adapter.js";
export {
  loadAdapter,
  saveAdapter,
  type LoadAdapterOptions,
  type SaveAdapterOptions,
} from "./adapter-folder.js";
export { BaseModel, type AdapterOptions, type SampleRequest } from "./base-model.js";
export type { DeviceChoice, EngineDevice } from "./gpu/device-choice.js";
export {
  Engine,
  type CreateModelOptions,
  type EngineOptions,
  type LoadModelOptions,
  type PrecisionOptions,
} from "./engine.js";
export { embeddedModelFolder, embeddedModelId, findModel } from "./find-model.js";
export { FullTuning } from "./full-tuning.js";
export type { ModelConfig } from "./model/model-config.js";
export type { LoadProgress } from "./model/model-weights.js";
export type { DigitCount, Int8Precision, Precision } from "./model/precision.js";
export type { DeviceName } from "./execution/device.js";
export type { DeviceTimes } from "./gpu/device-times.js";
export type { Int8Support } from "./model/int8-probe.js";
export {
  estimateMemory,
  type EstimateOptions,
  machineBytes,
  type MemoryEstimate,
} from "./runtime/memory-plan.js";
export type { StepMetrics } from "./runtime/protocol.js";
export type { CheckedPart, DeviceCheck } from "./gpu/self-check.js";
export type { Grammar, Rule } from "./constrain/grammar.js";
export type { Sample, SampleResult, StopReason, TokenEvent, TopTokens } from "./sample/sequence.js";
export type { PromptAlternatives, PromptResult } from "./sample/prompt-pass.js";
export type { PromptTargets, SampleConstraint, SampleOptions } from "./sample/request.js";
export { Snapshot } from "./snapshot.js";
export { TrainedModel, type PassOptions, type StateOptions } from "./trained-model.js";
export type { AdamOptions } from "./train/adam.js";
export type { Datum, LossInput } from "./train/datum.js";
export type { LossName } from "./train/losses.js";
export type { Metrics } from "./train/metrics.js";
export type { ParameterExport } from "./train/parameter-state.js";
export type { LossSettings } from "./train/prepare-data.js";
export type { DatumOutput, PassProgress, PassResult } from "./train/pass.js";
