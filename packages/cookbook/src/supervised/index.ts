export {
  defaultBatchSize,
  prepareData,
  type PrepareDataOptions,
  type PreparedData,
} from "./prepare-data.js";
export { train, type TrainResult } from "./train.js";
export type { DataOptions, TrainOptions, TrainProgress } from "./train-options.js";
