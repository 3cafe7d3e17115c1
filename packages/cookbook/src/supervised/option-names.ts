import { runOptionNames, type OptionNames, type RunOptions } from "../runs/index.js";
import type { BatchLoopOptions, DataOptions, TrainOptions } from "./train-options.js";

/** The names of the options of loops over batches. */
export const loopOptionNames: OptionNames<BatchLoopOptions> = {
  ...runOptionNames,
  ...({
    learningRate: true,
    lrSchedule: true,
    warmupSteps: true,
    numEpochs: true,
    infrequentEvalEvery: true,
    infrequentEvaluators: true,
    submitAhead: true,
    earlyStop: true,
  } satisfies OptionNames<Omit<BatchLoopOptions, keyof RunOptions>>),
};

/** The names of the options that prepare conversations. */
export const dataOptionNames: OptionNames<DataOptions> = {
  model: "needed",
  data: "needed",
  evalData: true,
  testSize: true,
  renderer: true,
  batchSize: true,
  maxLength: true,
  trainOnWhat: true,
  reduction: true,
  seed: true,
  map: true,
  badRows: true,
  hub: true,
  maxRows: true,
};

/** The names of the options of supervised training; `prepareData` takes the same. */
export const trainOptionNames: OptionNames<TrainOptions> = {
  ...loopOptionNames,
  ...dataOptionNames,
};
