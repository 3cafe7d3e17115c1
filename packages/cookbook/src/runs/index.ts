export {
  CheckpointKeeper,
  type CheckpointKeeperParts,
  type CheckpointOptions,
  type RunPosition,
} from "./checkpoint-keeper.js";
export { chooseRenderer, type ChooseRendererOptions } from "./choose-renderer.js";
export { findContextLength } from "./context-length.js";
export { DivergenceCheck, failUnlessFinite, RunFailedError } from "./divergence.js";
export { EarlyStop, type EarlyStopOptions } from "./early-stop.js";
export { KeptLines } from "./kept-lines.js";
export { contentHash, RunDiffersError } from "./compare-settings.js";
export { inRunFolder, withRun, type OpenRun, type RunPlan } from "./open-run.js";
export { defaultLearningRate, learningRateWarning } from "./learning-rate.js";
export { checkOptionNames, pickOptions, runOptionNames, type OptionNames } from "./option-names.js";
export { openTraining, type OpenedTraining, type OpenTrainingOptions } from "./open-training.js";
export {
  completeWith,
  enoughEpochs,
  needWhole,
  runConfig,
  runDefaults,
  type Completed,
  type RunOptions,
  type RunResult,
  type TrainProgress,
} from "./run-options.js";
