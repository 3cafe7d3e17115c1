import { ArgumentError, type AdamParamsInput, type ServiceClient } from "tinker-ts";
import type { CheckpointRow, Line, Metrics, RunSink } from "tinker-ts/run-log";
import type { Evaluator } from "../evaluation/index.js";
import { adamDefaults } from "../hyperparameters/index.js";
import type { CheckpointOptions } from "./checkpoint-keeper.js";

/** What every training loop is told about its run. */
export interface RunOptions extends CheckpointOptions {
  /** Where the model is trained. */
  readonly service: ServiceClient;
  /** The name of a model that the server supports. */
  readonly model: string;
  /** The run's folder. A folder that holds a run is gone on with, from its last checkpoint. */
  readonly folder: string;
  /** What to do with a folder that holds a run. @default "resume" */
  readonly ifExists?: "resume" | "delete" | "fail" | undefined;
  /** Kept with the run. @default the name of the loop */
  readonly recipeName?: string | undefined;
  /** Weights to begin with; the optimizer is fresh. */
  readonly loadCheckpointPath?: string | undefined;
  /** @default 32 */
  readonly loraRank?: number | undefined;
  /** The rest of the optimizer. @default beta1 0.9, beta2 0.95, eps 1e-8 */
  readonly adamParams?: Omit<AdamParamsInput, "learningRate"> | undefined;
  /** Ends earlier; a schedule is that of the shorter run. */
  readonly maxSteps?: number | undefined;
  /** Steps from one evaluation to the next, the first before step 0; 0 means never. */
  readonly evalEvery?: number | undefined;
  /** What is found out about the model from time to time. */
  readonly evaluators?: readonly Evaluator[] | undefined;
  /** Decides everything that is drawn: the order of data, what is sampled, the adapter's first weights. @default 0 */
  readonly seed?: number | undefined;
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
  /** Steps in all. */
  readonly totalSteps: number;
  /** Of the last step; empty at the start. */
  readonly metrics: Metrics;
}

/** How a run ended. */
export interface RunResult {
  /** `unchanged`: there was nothing left to do. */
  readonly status: "completed" | "stopped_early" | "interrupted" | "unchanged";
  /** Steps done, those of earlier attempts included. */
  readonly step: number;
  /** Steps in all. */
  readonly totalSteps: number;
  /** The last checkpoint: the final one, or the one to go on from. Undefined when nothing was trained. */
  readonly checkpoint: CheckpointRow | undefined;
  /** The run's folder. */
  readonly folder: string;
}

/** What every loop takes when nothing is said. */
export const runDefaults = {
  loraRank: 32,
  seed: 0,
  saveEvery: 20,
  saveEveryTokens: 0,
  saveEverySeconds: 0,
  ttlSeconds: 604_800,
  rollingSaveEvery: 0,
  rollingTtlSeconds: 7200,
  asyncPeriodicSaves: false,
} as const;

const runWholeNumbers = {
  loraRank: 1,
  maxSteps: 1,
  evalEvery: 0,
  saveEvery: 0,
  rollingSaveEvery: 0,
} as const;

/** Options with everything that has a default. */
export type Completed<Options, Defaults> = Options & {
  readonly [K in keyof Defaults & keyof Options]-?: Exclude<Options[K], undefined>;
};

/** Fills in what was left out; `wholeNumbers` has the least value of every option that counts something. */
export function completeWith<Options extends RunOptions, const Defaults extends object>(
  options: Options,
  defaults: Defaults,
  wholeNumbers: Readonly<Record<string, number>>,
): Completed<Options, typeof runDefaults & Defaults> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const complete = { ...runDefaults, ...defaults, ...Object.fromEntries(given) };
  const values: Readonly<Record<string, unknown>> = complete;
  for (const [name, least] of Object.entries({ ...runWholeNumbers, ...wholeNumbers })) {
    if (values[name] !== undefined) needWhole(name, values[name] as number, least);
  }
  return complete as unknown as Completed<Options, typeof runDefaults & Defaults>;
}

/** Refuses what is not a whole number, or too small. */
export function needWhole(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new ArgumentError(name, `must be a whole number from ${least}, not ${value}`);
}

/** What `config.json` says of every run; its names are those of the Python cookbook, which readers know. */
export function runConfig(options: Completed<RunOptions, typeof runDefaults>): Line {
  return {
    log_path: options.folder,
    model_name: options.model,
    recipe_name: options.recipeName,
    load_checkpoint_path: options.loadCheckpointPath,
    seed: options.seed,
    max_steps: options.maxSteps,
    lora_rank: options.loraRank,
    adam: { ...adamDefaults, ...options.adamParams },
    eval_every: options.evalEvery,
    save_every: options.saveEvery,
    save_every_tokens: options.saveEveryTokens,
    save_every_seconds: options.saveEverySeconds,
    ttl_seconds: options.ttlSeconds,
    rolling_save_every: options.rollingSaveEvery,
    rolling_ttl_seconds: options.rollingTtlSeconds,
    async_periodic_saves: options.asyncPeriodicSaves,
  };
}
