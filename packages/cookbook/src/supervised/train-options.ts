import { ArgumentError, type AdamParamsInput, type ServiceClient } from "tinker-ts";
import type { Line, Metrics, RunSink } from "tinker-ts/run-log";
import type { Dataset, LoadOptions, RowSource, WeightReduction } from "../data/index.js";
import type { Evaluator } from "../evaluation/index.js";
import { adamDefaults, type LearningRateSchedule } from "../hyperparameters/index.js";
import type { Renderer, TrainOnWhat } from "../renderers/index.js";
import type { CheckpointOptions, EarlyStopOptions } from "../runs/index.js";
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

/** How a model is trained on examples. */
export interface TrainOptions extends Omit<DataOptions, "data">, CheckpointOptions {
  /** What is learned: as in `prepareData`, or what that made. */
  readonly data: DataOptions["data"] | PreparedData;
  /** Where the model is trained. */
  readonly service: ServiceClient;
  /** The run's folder. A folder that holds a run is gone on with, from its last checkpoint. */
  readonly folder: string;
  /** What to do with a folder that holds a run. @default "resume" */
  readonly ifExists?: "resume" | "delete" | "fail" | undefined;
  /** Kept with the run. @default "supervised" */
  readonly recipeName?: string | undefined;
  /** Weights to begin with; the optimizer is fresh. */
  readonly loadCheckpointPath?: string | undefined;
  /** The highest rate; `auto` takes the one recommended for the model. @default 1e-4 */
  readonly learningRate?: number | "auto" | undefined;
  /** @default "linear" */
  readonly lrSchedule?: LearningRateSchedule | undefined;
  /** Steps in which the rate rises to its highest. @default 0 */
  readonly warmupSteps?: number | undefined;
  /** @default 1 */
  readonly numEpochs?: number | undefined;
  /** Ends earlier; the schedule is that of the shorter run. */
  readonly maxSteps?: number | undefined;
  /** @default 32 */
  readonly loraRank?: number | undefined;
  /** The rest of the optimizer. @default beta1 0.9, beta2 0.95, eps 1e-8 */
  readonly adamParams?: Omit<AdamParamsInput, "learningRate"> | undefined;
  /** Steps from one evaluation to the next, the first before step 0. @default 10 */
  readonly evalEvery?: number | undefined;
  /** The same for those that take long. @default 100 */
  readonly infrequentEvalEvery?: number | undefined;
  readonly evaluators?: readonly Evaluator[] | undefined;
  readonly infrequentEvaluators?: readonly Evaluator[] | undefined;
  /** Steps that are submitted before the one before them is done; they keep the server busy. @default 1 */
  readonly submitAhead?: number | undefined;
  /** Ends the run when an evaluation does not get better. */
  readonly earlyStop?: EarlyStopOptions | undefined;
  /** Where the run is told to besides its folder. */
  readonly sinks?: readonly RunSink[] | undefined;
  /** Called at the start and after every step. */
  readonly onProgress?: ((progress: TrainProgress) => void) | undefined;
  /** Ends the run after the steps under way, with a checkpoint to go on from. */
  readonly signal?: AbortSignal | undefined;
}

/** How far a run is. */
export interface TrainProgress {
  /** Steps done. */
  readonly step: number;
  readonly totalSteps: number;
  /** Of the last step; empty at the start. */
  readonly metrics: Metrics;
}

const defaults = {
  recipeName: "supervised",
  learningRate: 1e-4,
  lrSchedule: "linear",
  warmupSteps: 0,
  numEpochs: 1,
  loraRank: 32,
  evalEvery: 10,
  infrequentEvalEvery: 100,
  submitAhead: 1,
  seed: 0,
  saveEvery: 20,
  saveEveryTokens: 0,
  saveEverySeconds: 0,
  ttlSeconds: 604_800,
  rollingSaveEvery: 0,
  rollingTtlSeconds: 7200,
  asyncPeriodicSaves: false,
} as const;

/** Options with everything that has a default. */
export type CompleteOptions = TrainOptions & {
  readonly [K in keyof typeof defaults]: Exclude<TrainOptions[K], undefined>;
};

const wholeNumbers = {
  numEpochs: 1,
  loraRank: 1,
  batchSize: 1,
  maxSteps: 1,
  maxLength: 2,
  warmupSteps: 0,
  evalEvery: 0,
  infrequentEvalEvery: 0,
  submitAhead: 0,
  saveEvery: 0,
  rollingSaveEvery: 0,
  testSize: 0,
} as const;

/** Fills in what was left out and refuses what cannot be meant. */
export function completeOptions(options: TrainOptions): CompleteOptions {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const complete = { ...defaults, ...Object.fromEntries(given) } as unknown as CompleteOptions;
  for (const [name, least] of Object.entries(wholeNumbers)) {
    const value = complete[name as keyof typeof wholeNumbers];
    if (value === undefined || (Number.isSafeInteger(value) && value >= least)) continue;
    throw new ArgumentError(name, `must be a whole number from ${least}, not ${value}`);
  }
  const { learningRate } = complete;
  if (learningRate !== "auto" && !(learningRate > 0 && Number.isFinite(learningRate))) {
    throw new ArgumentError("learningRate", `must be "auto" or a positive number`);
  }
  return complete;
}

/** What `config.json` says; its names are those of the Python cookbook, which readers know. */
export function toConfig(
  options: CompleteOptions,
  learningRate: number,
  { files, renderer, batchSize }: PreparedData,
): Line {
  const { lrSchedule, loadCheckpointPath } = options;
  return {
    log_path: options.folder,
    model_name: options.model,
    recipe_name: options.recipeName,
    renderer_name: renderer?.name,
    load_checkpoint_path: loadCheckpointPath,
    data: files.data ?? "(given by the program)",
    eval_data: files.test,
    test_size: options.testSize,
    batch_size: batchSize,
    max_length: options.maxLength,
    train_on_what: options.trainOnWhat ?? "all_assistant_messages",
    reduction: options.reduction ?? "mean",
    seed: options.seed,
    learning_rate: learningRate,
    lr_schedule: typeof lrSchedule === "function" ? lrSchedule.name || "(function)" : lrSchedule,
    warmup_steps: options.warmupSteps,
    num_epochs: options.numEpochs,
    max_steps: options.maxSteps,
    lora_rank: options.loraRank,
    adam: { ...adamDefaults, ...options.adamParams },
    eval_every: options.evalEvery,
    infrequent_eval_every: options.infrequentEvalEvery,
    submit_ahead: options.submitAhead,
    save_every: options.saveEvery,
    save_every_tokens: options.saveEveryTokens,
    save_every_seconds: options.saveEverySeconds,
    ttl_seconds: options.ttlSeconds,
    rolling_save_every: options.rollingSaveEvery,
    rolling_ttl_seconds: options.rollingTtlSeconds,
    async_periodic_saves: options.asyncPeriodicSaves,
    early_stop: options.earlyStop as Line | undefined,
  };
}
