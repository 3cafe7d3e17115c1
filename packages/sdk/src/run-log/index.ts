export type { CheckpointRow } from "./checkpoint-row.js";
export { consoleSink, type ConsoleSinkOptions, type ConsoleStream } from "./console-sink.js";
export { nonFiniteMark, type Line, type LineValue, type ReadLines } from "./folder-writer.js";
export { openTelemetrySink, type Span, StepSpans } from "./open-telemetry-sink.js";
export {
  readJsonLines,
  readRunFolder,
  runFiles,
  type RunFolder,
  type StepMetrics,
  type StepTiming,
} from "./run-folder.js";
export { fileNameOf, RunLog, type RunLogOptions } from "./run-log.js";
export type {
  LoggedExample,
  Metrics,
  Rollout,
  RunRecord,
  RunSink,
  TextLevel,
} from "./run-record.js";
export { checkpointOfRun, savedWeights, type WeightsKind } from "./saved-weights.js";
export { ServiceSink, type LogPort, type ServiceSinkOptions } from "./service-sink.js";
