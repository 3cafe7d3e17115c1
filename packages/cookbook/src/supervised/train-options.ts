import { ArgumentError } from "tinker-ts";
import type { Line } from "tinker-ts/run-log";
import type { Dataset, LoadOptions, RowSource, WeightReduction } from "../data/index.js";
import type { Evaluator } from "../evaluation/index.js";
import { recommendedLearningRate, type LearningRateSchedule } from "../hyperparameters/index.js";
import type { Renderer, TrainOnWhat } from "../renderers/index.js";
import {
  completeWith,
  defaultLearningRate,
  runConfig,
  type Completed,
  type EarlyStopOptions,
  type runDefaults,
  type RunOptions,
} from "../runs/index.js";
import type { PreparedData } from "./prepare-data.js";

/** The training data, and how it becomes batches. */
export interface DataOptions extends LoadOptions {
  /** The name of a model that the server supports. */
  readonly model: string;
  /** Rows: a file (JSONL, JSON, CSV, Parquet), a list or a stream; or a data set in batches. */
  readonly data: RowSource | Dataset;
  /** Rows to evaluate on; their loss is logged as `test/nll` and `test/bpb`. */
  readonly evalData?: RowSource | undefined;
  /** The number of rows of `data` to hold out for evaluation instead. @default 0 */
  readonly testSize?: number | undefined;
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Rows per step. @default up to 128, so that an epoch has a hundred steps */
  readonly batchSize?: number | undefined;
  /** The maximum length of a sequence in tokens; longer ones are cut. @default the model's context length */
  readonly maxLength?: number | undefined;
  /** The messages to learn. @default "all_assistant_messages" */
  readonly trainOnWhat?: TrainOnWhat | undefined;
  /** How the weights of an example are normalized. @default "mean" */
  readonly reduction?: WeightReduction | undefined;
  /** Random seed for data order and initial weights. @default 0 */
  readonly seed?: number | undefined;
}

/** Options of loops that learn from batches of given data. */
export interface BatchLoopOptions extends RunOptions {
  /** The peak learning rate. @default "auto": the rate recommended for the model; 1e-4 for families without one */
  readonly learningRate?: number | "auto" | undefined;
  /** Learning rate schedule. @default "linear" */
  readonly lrSchedule?: LearningRateSchedule | undefined;
  /** Steps until the learning rate reaches its peak. @default 0 */
  readonly warmupSteps?: number | undefined;
  /** Passes over the data. @default 1, or as many as give 30 steps; 1 for data in batches */
  readonly numEpochs?: number | undefined;
  /** Steps between evaluations, the first before step 0; 0 means never. @default 10 */
  readonly evalEvery?: number | undefined;
  /** Steps between slow evaluations. @default 100 */
  readonly infrequentEvalEvery?: number | undefined;
  /** Slow evaluations. */
  readonly infrequentEvaluators?: readonly Evaluator[] | undefined;
  /** Steps to submit before the results of earlier ones arrive, which keeps the server busy. @default 1 */
  readonly submitAhead?: number | undefined;
  /** Ends the run when an evaluation stops improving. */
  readonly earlyStop?: EarlyStopOptions | undefined;
}

/** Options of supervised training. */
export interface TrainOptions
  extends Omit<DataOptions, "data" | "model" | "seed">, BatchLoopOptions {
  /** The training data: as in `prepareData`, or its result. */
  readonly data: DataOptions["data"] | PreparedData;
}

const loopDefaults = {
  lrSchedule: "linear",
  warmupSteps: 0,
  evalEvery: 10,
  infrequentEvalEvery: 100,
  submitAhead: 1,
} as const;

type LoopDefaults = typeof runDefaults & typeof loopDefaults & { readonly recipeName: string };

/** Options of a loop with their defaults and the learning rate as a number. */
export type CompleteLoopOptions<Options extends BatchLoopOptions = BatchLoopOptions> = Completed<
  Omit<Options, "learningRate">,
  LoopDefaults
> & { readonly learningRate: number };

/** Options of supervised training with their defaults. */
export type CompleteOptions = CompleteLoopOptions<TrainOptions>;

const wholeNumbers = {
  numEpochs: 1,
  batchSize: 1,
  maxLength: 2,
  warmupSteps: 0,
  infrequentEvalEvery: 0,
  submitAhead: 0,
  testSize: 0,
} as const;

/** Options with the defaults of a loop. `rate` is the loop's share of the recommended learning rate. */
export function completeLoopOptions<Options extends BatchLoopOptions>(
  options: Options,
  defaults: Partial<BatchLoopOptions> & { readonly recipeName: string },
  rate: { readonly share?: number; readonly otherwise: number } = { otherwise: 1e-4 },
): CompleteLoopOptions<Options> {
  const all = { ...loopDefaults, ...defaults };
  const complete = completeWith(options, all, wholeNumbers) as Completed<Options, LoopDefaults>;
  const { model } = complete;
  const { share = 1 } = rate;
  const { learningRate: given = defaultLearningRate(model, rate) } = complete;
  const learningRate = given === "auto" ? recommendedLearningRate(model) * share : given;
  if (!(learningRate > 0 && Number.isFinite(learningRate))) {
    throw new ArgumentError("learningRate", `must be "auto" or a positive number`);
  }
  return { ...complete, learningRate };
}

/** Options of a supervised run with their defaults. */
export function completeOptions(options: TrainOptions): CompleteOptions {
  return completeLoopOptions(options, { recipeName: "supervised" });
}

/** The settings of a loop over batches in `config.json`. */
export function loopConfig(options: CompleteLoopOptions): Line {
  const { lrSchedule } = options;
  return {
    ...runConfig(options),
    learning_rate: options.learningRate,
    lr_schedule: typeof lrSchedule === "function" ? lrSchedule.name || "(function)" : lrSchedule,
    warmup_steps: options.warmupSteps,
    num_epochs: options.numEpochs,
    infrequent_eval_every: options.infrequentEvalEvery,
    submit_ahead: options.submitAhead,
    early_stop: options.earlyStop as Line | undefined,
  };
}

/** The settings of the data in `config.json`. */
export function dataConfig(
  options: CompleteOptions,
  { files, renderer, batchSize, dataHash }: PreparedData,
): Line {
  return {
    renderer_name: renderer?.name,
    data: files.data ?? "(given by the program)",
    data_hash: dataHash,
    eval_data: files.test,
    test_size: options.testSize,
    batch_size: batchSize,
    max_length: options.maxLength,
    train_on_what: options.trainOnWhat ?? "all_assistant_messages",
    reduction: options.reduction ?? "mean",
  };
}
