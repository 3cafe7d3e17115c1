export { nextTokens, type BatchPlace, type Objective } from "./objective.js";
export {
  defaultBatchSize,
  fewRowsWarning,
  isPrepared,
  prepareData,
  type PrepareDataOptions,
  type PreparedData,
} from "./prepare-data.js";
export { loopOptionNames, trainOptionNames } from "./option-names.js";
export { train } from "./train.js";
export { trainBatches, type BatchParts, type TrainResult } from "./train-batches.js";
export {
  completeLoopOptions,
  type BatchLoopOptions,
  type CompleteLoopOptions,
  type DataOptions,
  type TrainOptions,
} from "./train-options.js";
