import { ArgumentError, type AdamParamsInput, type ServiceClient } from "tinker-ts";
import type { CheckpointRow, Line, Metrics, RunSink } from "tinker-ts/run-log";
import type { Evaluator } from "../evaluation/index.js";
import { adamDefaults } from "../hyperparameters/index.js";
import type { CheckpointOptions } from "./checkpoint-keeper.js";

/** Options of every training loop. */
export interface RunOptions extends CheckpointOptions {
  /** Where the model is trained. */
  readonly service: ServiceClient;
  /** The name of a model that the server supports. */
  readonly model: string;
  /** The run's folder. */
  readonly folder: string;
  /**
   * What to do with a folder that holds a run: resume it from its last checkpoint, delete it, fail, or use the next free
   * of the numbered folders FOLDER-2, FOLDER-3. A run with other data or settings cannot be resumed.
   * @default "resume"
   */
  readonly ifExists?: "resume" | "delete" | "fail" | "new" | undefined;
  /** The name of the recipe, stored with the run. @default the name of the loop */
  readonly recipeName?: string | undefined;
  /** Weights to start from, with a new optimizer. */
  readonly loadCheckpointPath?: string | undefined;
  /** The rank of the adapter. @default 32 */
  readonly loraRank?: number | undefined;
  /** Settings of the optimizer besides its learning rate. @default beta1 0.9, beta2 0.95, eps 1e-8 */
  readonly adamParams?: Omit<AdamParamsInput, "learningRate"> | undefined;
  /** The maximum number of steps; learning rate schedules end there. */
  readonly maxSteps?: number | undefined;
  /** Steps between evaluations, the first before step 0; 0 means never. */
  readonly evalEvery?: number | undefined;
  /** Evaluations of the model during training. */
  readonly evaluators?: readonly Evaluator[] | undefined;
  /** Random seed for data order, sampling and initial weights. @default 0 */
  readonly seed?: number | undefined;
  /** Further destinations of the run's log. */
  readonly sinks?: readonly RunSink[] | undefined;
  /** Called at the start and after every step. */
  readonly onProgress?: ((progress: TrainProgress) => void) | undefined;
  /** Ends the run after the steps in flight, with a checkpoint to resume from. */
  readonly signal?: AbortSignal | undefined;
}

/** The progress of a run. */
export interface TrainProgress {
  /** Steps done. */
  readonly step: number;
  /** Steps of the whole run. */
  readonly totalSteps: number;
  /** Metrics of the last step; empty at the start. */
  readonly metrics: Metrics;
}

/** The result of a run. */
export interface RunResult {
  /** `unchanged`: the run had already ended, and the result is its model. */
  readonly status: "completed" | "stopped_early" | "interrupted" | "unchanged";
  /** Steps done, including those of earlier attempts. */
  readonly step: number;
  /** Steps of the whole run. */
  readonly totalSteps: number;
  /** The last checkpoint: the final one, or the one to resume from. Undefined when nothing was trained. */
  readonly checkpoint: CheckpointRow | undefined;
  /** The run's folder. */
  readonly folder: string;
  /** Problems that did not stop the run, such as a run that learned nothing. */
  readonly warnings: readonly string[];
  /** Inputs that were not compared with those of the earlier attempt, because they are functions or streams. */
  readonly notCompared: readonly string[];
}

/** Defaults of every loop. */
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

/** Options with their defaults; `wholeNumbers` has the smallest value of every option that is an integer. */
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

/** Refuses a value that is not an integer or is below `least`. */
export function needWhole(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new ArgumentError(name, `must be an integer of at least ${least}, not ${value}`);
}

const enoughSteps = 30;

/** Passes over small data that give enough steps to change a model. */
export function enoughEpochs(batchesPerEpoch: number): number {
  return Math.ceil(enoughSteps / Math.max(1, batchesPerEpoch));
}

/** The settings of every run in `config.json`, under the names of the Python cookbook. */
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
