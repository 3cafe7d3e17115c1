export {
  CheckpointKeeper,
  type CheckpointKeeperParts,
  type CheckpointOptions,
  type RunPosition,
} from "./checkpoint-keeper.js";
export { chooseRenderer, type ChooseRendererOptions } from "./choose-renderer.js";
export { findContextLength } from "./context-length.js";
export { EarlyStop, type EarlyStopOptions } from "./early-stop.js";
export { KeptLines } from "./kept-lines.js";
export {
  checkSameRun,
  openTraining,
  warnOfChanges,
  type OpenedTraining,
  type OpenTrainingOptions,
} from "./open-training.js";
export {
  completeWith,
  needWhole,
  runConfig,
  runDefaults,
  type Completed,
  type RunOptions,
  type RunResult,
  type TrainProgress,
} from "./run-options.js";
export { withRunLog } from "./with-run-log.js";
