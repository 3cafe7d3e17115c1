export {
  defaultBatchSize,
  prepareData,
  type PrepareDataOptions,
  type PreparedData,
} from "./prepare-data.js";
export { train, type TrainResult } from "./train.js";
export type { BatchLoopOptions, DataOptions, TrainOptions } from "./train-options.js";
