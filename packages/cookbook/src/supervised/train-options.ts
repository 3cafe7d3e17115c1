import { ArgumentError } from "tinker-ts";
import type { Line } from "tinker-ts/run-log";
import type { Dataset, LoadOptions, RowSource, WeightReduction } from "../data/index.js";
import type { Evaluator } from "../evaluation/index.js";
import { recommendedLearningRate, type LearningRateSchedule } from "../hyperparameters/index.js";
import type { Renderer, TrainOnWhat } from "../renderers/index.js";
import {
  completeWith,
  runConfig,
  type Completed,
  type EarlyStopOptions,
  type runDefaults,
  type RunOptions,
} from "../runs/index.js";
import type { PreparedData } from "./prepare-data.js";

/** What is learned, and how it becomes batches. */
export interface DataOptions extends LoadOptions {
  /** The name of a model that the server supports. */
  readonly model: string;
  /** Rows: a file (JSONL, JSON, CSV, Parquet), a list, a stream; or data in batches already. */
  readonly data: RowSource | Dataset;
  /** Rows that are not trained; their loss is told as `test/nll` and `test/bpb`. */
  readonly evalData?: RowSource | undefined;
  /** Takes this many rows out of `data` instead. @default 0 */
  readonly testSize?: number | undefined;
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Rows per step. @default up to 128, so that a run has a hundred steps */
  readonly batchSize?: number | undefined;
  /** Longest sequence; what is beyond is cut off. @default what the model takes */
  readonly maxLength?: number | undefined;
  /** @default "all_assistant_messages" */
  readonly trainOnWhat?: TrainOnWhat | undefined;
  /** @default "mean" */
  readonly reduction?: WeightReduction | undefined;
  /** Decides the order of rows and the adapter's first weights. @default 0 */
  readonly seed?: number | undefined;
}

/** How a loop goes through data in batches. */
export interface BatchLoopOptions extends RunOptions {
  /** The highest rate; `auto` takes the one recommended for the model. @default 1e-4 */
  readonly learningRate?: number | "auto" | undefined;
  /** @default "linear" */
  readonly lrSchedule?: LearningRateSchedule | undefined;
  /** Steps in which the rate rises to its highest. @default 0 */
  readonly warmupSteps?: number | undefined;
  /** How often the data is gone through. @default 1 */
  readonly numEpochs?: number | undefined;
  /** Steps from one evaluation to the next, the first before step 0. @default 10 */
  readonly evalEvery?: number | undefined;
  /** The same for those that take long. @default 100 */
  readonly infrequentEvalEvery?: number | undefined;
  /** Those that take long. */
  readonly infrequentEvaluators?: readonly Evaluator[] | undefined;
  /** Steps that are submitted before the one before them is done; they keep the server busy. @default 1 */
  readonly submitAhead?: number | undefined;
  /** Ends the run when an evaluation does not get better. */
  readonly earlyStop?: EarlyStopOptions | undefined;
}

/** How a model is trained on examples. */
export interface TrainOptions
  extends Omit<DataOptions, "data" | "model" | "seed">, BatchLoopOptions {
  /** What is learned: as in `prepareData`, or what that made. */
  readonly data: DataOptions["data"] | PreparedData;
}

const loopDefaults = {
  learningRate: 1e-4,
  lrSchedule: "linear",
  warmupSteps: 0,
  numEpochs: 1,
  evalEvery: 10,
  infrequentEvalEvery: 100,
  submitAhead: 1,
} as const;

type LoopDefaults = typeof runDefaults & typeof loopDefaults & { readonly recipeName: string };

/** Options of a loop with everything that has a default, and a rate that is known. */
export type CompleteLoopOptions<Options extends BatchLoopOptions = BatchLoopOptions> = Completed<
  Omit<Options, "learningRate">,
  LoopDefaults
> & { readonly learningRate: number };

/** Options with everything that has a default. */
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

/** Fills in what was left out and refuses what cannot be meant; `defaults` are the loop's own. */
export function completeLoopOptions<Options extends BatchLoopOptions>(
  options: Options,
  defaults: Partial<BatchLoopOptions> & { readonly recipeName: string },
): CompleteLoopOptions<Options> {
  const all = { ...loopDefaults, ...defaults };
  const complete = completeWith(options, all, wholeNumbers) as Completed<Options, LoopDefaults>;
  const given: number | "auto" = complete.learningRate;
  const learningRate = given === "auto" ? recommendedLearningRate(complete.model) : given;
  if (!(learningRate > 0 && Number.isFinite(learningRate))) {
    throw new ArgumentError("learningRate", `must be "auto" or a positive number`);
  }
  return { ...complete, learningRate };
}

/** What was left out of a supervised run's options. */
export function completeOptions(options: TrainOptions): CompleteOptions {
  return completeLoopOptions(options, { recipeName: "supervised" });
}

/** What `config.json` says of a loop over batches. */
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

/** What `config.json` says of the data. */
export function dataConfig(
  options: CompleteOptions,
  { files, renderer, batchSize }: PreparedData,
): Line {
  return {
    renderer_name: renderer?.name,
    data: files.data ?? "(given by the program)",
    eval_data: files.test,
    test_size: options.testSize,
    batch_size: batchSize,
    max_length: options.maxLength,
    train_on_what: options.trainOnWhat ?? "all_assistant_messages",
    reduction: options.reduction ?? "mean",
  };
}
