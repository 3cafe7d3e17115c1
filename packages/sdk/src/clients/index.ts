export type {
  ChatMessage,
  DecodeOptions,
  EncodedChat,
  EncodeOptions,
  NamedToken,
  NamedTokens,
  RenderChatOptions,
  Tokenizer,
} from "@tinker-ts/hub";
export type { DownloadedFile, DownloadProgress } from "../checkpoints/download-file.js";
export type { UploadProgress } from "../checkpoints/upload-checkpoint.js";
export type { DownloadedCheckpoint } from "../checkpoints/download-checkpoint.js";
export { ApiFuture } from "../futures/api-future.js";
export type {
  FutureState,
  FutureStatus,
  FutureTimings,
  LastAnswer,
  OperationOptions,
} from "../futures/operation.js";
export type { CancelTimer, Clock, ScheduleOptions } from "../runtime/clock.js";
export type { ClientEvent, EventListener, OperationName } from "../runtime/events.js";
export type { Logger, LogLevel } from "../runtime/logger.js";
export type { RuntimeOptions } from "../runtime/runtime.js";
export type { ConnectionOptions } from "../session/connection-plan.js";
export type { MissingEndpoint, ServerDescription } from "../session/describe-server.js";
export type { Dialect, DialectOption } from "../session/dialect.js";
export { loadTokenizer, type LoadTokenizerOptions } from "./load-tokenizer.js";
export type { FetchHandler } from "../transport/fetch-transport.js";
export type { SocketOptions } from "../transport/socket-transport.js";
export type { UserMetadata } from "./training/make-training-client.js";
export {
  isLostRun,
  recoverTrainingClient,
  type RecoveryOptions,
  trainWithRecovery,
} from "./recovery/recover-training-client.js";
export type { RecoveredTraining, RecoveryPolicy } from "./recovery/rebuild-client.js";
export { RestClient } from "./rest-client.js";
export type {
  AccessScope,
  AuditLogOptions,
  BillingUsageOptions,
  DownloadCheckpointOptions,
  DownloadTraceOptions,
  ListTrainingRunsOptions,
  PageOptions,
  ScopeOptions,
  UploadCheckpointOptions,
} from "./rest-options.js";
export type { RetryConfig } from "./sampling/retry-handler.js";
export {
  SamplingClient,
  type ComputeLogprobsOptions,
  type SampleOptions,
  type SamplerHandleOptions,
  type StreamOptions,
} from "./sampling-client.js";
export type { SampledToken, SampleStream } from "./sampling/sample-stream.js";
export type { SamplingSource } from "./sampling-source.js";
export type { SamplingClientState } from "./sampling/transfer-state.js";
export { ServiceClient } from "./service-client.js";
export type {
  CloseOptions,
  CopyWeightsOptions,
  CreateFromStateOptions,
  CreateLoraTrainingClientOptions,
  CreateSamplingClientOptions,
  SessionStatus,
} from "./create-options.js";
export type { ServiceClientOptions } from "./service-options.js";
export { TrainingClient } from "./training-client.js";
export type {
  LoadStateOptions,
  PassOptions,
  SamplerOptions,
  SaveExternalOptions,
  SaveSamplerOptions,
  SaveStateOptions,
  TrainStepOptions,
  TrainStepResult,
} from "./training-options.js";
export type { CustomLoss, CustomLossFn } from "./training/custom-loss.js";
export { jaxLoss, type JaxArray, type JaxLoss } from "./training/jax-loss.js";
