export { decodeJson, encodeJson } from "./json-codec.js";
export { parseJson, stringifyJson } from "./json-text.js";
export { decodeProto, encodeProto, hasProto, type ProtoTypeName } from "./proto-codec.js";
export { readRequestPlace, type RequestPlace } from "./request-place.js";
export { routes, type Pool, type RetryClass, type Route, type RouteName } from "./routes.js";
export { wireTypes, type WireInput, type WireTypeName, type WireValue } from "./wire-types.js";
export { compressZstd, decompressZstd, defaultMaxDecompressedBytes } from "./zstd.js";
export { WireError, type WireDirection } from "../errors/wire-error.js";
export { TinkerError } from "../errors/tinker-error.js";
export { ArgumentError } from "../errors/argument-error.js";
export { CheckpointPath } from "../types/checkpoint-path.js";
export { Datum } from "../types/datum.js";
export { ModelInput } from "../types/model-input.js";
export { TensorData } from "../types/tensor-data.js";
export { checkAdamParams, checkLoraConfig, checkSamplingParams } from "../types/validate.js";
export type * from "./studio.js";
export { studioRoutes, type StudioRoute, type StudioRouteName } from "./studio-routes.js";
export {
  readStudioSeries,
  studioColumns,
  writeStudioSeries,
  type StudioColumn,
  type StudioSeries,
  type StudioSeriesHeader,
} from "./studio-series.js";
export { logsPath } from "./log-lines.js";
export type {
  LogEntry,
  LogExample,
  LogLine,
  LogLineHead,
  LogRollout,
  LogsAnswer,
  LogValue,
} from "./log-lines.js";
