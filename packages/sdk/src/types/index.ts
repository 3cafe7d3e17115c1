export type { KeepsUnknownFields, Omittable, UnknownFields } from "../schema/schema.js";
export { Timestamp } from "../schema/timestamp.js";
export type {
  BillingEventInfo,
  BillingUsageEvent,
  BillingUsageResponse,
  BillingUsageSession,
  CheckpointBillingEvent,
  SamplingPrefillBillingEvent,
  SamplingSampleBillingEvent,
  StorageBillingEvent,
  TrainingBillingEvent,
} from "./billing.js";
export { CheckpointPath } from "./checkpoint-path.js";
export {
  Datum,
  type DatumInit,
  type DatumLike,
  type LossFnInput,
  type LossFnInputsLike,
} from "./datum.js";
export type { QueueState, RequestErrorCategory } from "./futures.js";
export {
  ModelInput,
  type DmelChunk,
  type DmelChunkInput,
  type EncodedTextChunk,
  type EncodedTextChunkInput,
  type ImageAssetPointerChunk,
  type ImageAssetPointerChunkInput,
  type ImageChunk,
  type ImageChunkInput,
  type ImageFormat,
  type ModelInputChunk,
  type ModelInputChunkInput,
  type ModelInputInit,
  type ModelInputLike,
} from "./model-input.js";
export {
  policyDatum,
  supervisedDatum,
  type PolicyDatumOptions,
  type PolicySequence,
  type SupervisedDatumOptions,
} from "./next-token-data.js";
export type { DatumProvenance, ProvenanceSpan } from "./provenance.js";
export type {
  AuditLogEntry,
  AuditLogResponse,
  Checkpoint,
  CheckpointsListResponse,
  CheckpointType,
  Cursor,
  GetSessionResponse,
  ListSessionsResponse,
  TrainingRun,
  TrainingRunsResponse,
  WhoamiResponse,
} from "./runs.js";
export type {
  GetSamplerResponse,
  SampledSequence,
  SampleResponse,
  SamplingParams,
  SamplingParamsInput,
  StopReason,
} from "./sampling.js";
export type { SamplingExtensions } from "./sampling-extensions.js";
export type {
  ClientConfigResponse,
  GetServerCapabilitiesResponse,
  SupportedModel,
} from "./service.js";
export type { Severity } from "./telemetry.js";
export {
  TensorData,
  type TensorDataInit,
  type TensorDtype,
  type TensorLike,
  type TensorStorage,
  type TypedArray,
} from "./tensor-data.js";
export type { NestedList } from "./tensor-data.js";
export type {
  AdamParams,
  AdamParamsInput,
  ForwardBackwardOutput,
  GetInfoResponse,
  LoraConfig,
  LoraConfigInput,
  LossFnOutput,
  LossFnType,
  ModelData,
  OptimStepResponse,
} from "./training.js";
export type {
  CheckpointArchiveUrlResponse,
  ExternalWeightsUrlsResponse,
  LoadWeightsResponse,
  SaveWeightsExternalResponse,
  SaveWeightsForSamplerResponse,
  SaveWeightsResponse,
  WeightsInfoResponse,
} from "./weights.js";
export { checkAdamParams, checkLoraConfig, checkSamplingParams } from "./validate.js";
