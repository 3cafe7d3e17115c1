import { ArgumentError, type TrainingClient } from "tinker-ts";
import {
  readRunFolder,
  RunLog,
  savedWeights,
  type CheckpointRow,
  type Line,
} from "tinker-ts/run-log";
import { CheckpointKeeper } from "./checkpoint-keeper.js";
import { checkSameSettings, withNulls } from "./compare-settings.js";
import { openTraining } from "./open-training.js";
import type { Completed, runDefaults, RunOptions, RunResult } from "./run-options.js";

/** What a loop knows about its run before the first step. */
export interface RunPlan {
  /** All settings, for `config.json`. A resumed run must have the same ones, except those that change no weights. */
  readonly config: Line;
  /** Steps of the whole run. */
  readonly totalSteps: number;
  /** Batches of an epoch, for loops that count epochs. */
  readonly batchesPerEpoch?: number | undefined;
  /** The chat format, stored with the model for runs that start from its weights. */
  readonly rendererName?: string | undefined;
  /** Inputs that have no content to compare when a run is resumed: functions and datasets of the program. */
  readonly notCompared: readonly string[];
  /** Problems of the inputs that do not stop the run. */
  readonly warnings?: readonly string[] | undefined;
}

type RunSettings = Completed<RunOptions, typeof runDefaults>;

/** A run with its log, its model and its checkpoints open. */
export class OpenRun {
  readonly log: RunLog;
  readonly training: TrainingClient;
  readonly keeper: CheckpointKeeper;
  /** The checkpoint that the run continues from; undefined for a new run. */
  readonly row: CheckpointRow | undefined;
  /** The first step of this attempt. */
  readonly startStep: number;
  /** Positions trained before this attempt. */
  readonly startTokens: number;
  /** Aborted by the caller, or by a user of the studio. */
  readonly signal: AbortSignal;
  readonly #plan: RunPlan;
  readonly #warnings: string[] = [];

  constructor(
    plan: RunPlan,
    parts: {
      readonly options: RunSettings;
      readonly log: RunLog;
      readonly training: TrainingClient;
      readonly row: CheckpointRow | undefined;
      readonly signal: AbortSignal;
    },
  ) {
    const { options, log, training, row, signal } = parts;
    this.#plan = plan;
    this.log = log;
    this.training = training;
    this.row = row;
    this.signal = signal;
    this.startStep = (row?.epoch ?? 0) * (plan.batchesPerEpoch ?? 0) + (row?.batch ?? 0);
    this.startTokens = Number(row?.extra?.["elapsed_tokens"] ?? 0);
    const rest = options.service.createRestClient();
    const resumedFrom = row && { row, step: this.startStep };
    this.keeper = new CheckpointKeeper({ training, rest, run: log, options, resumedFrom });
  }

  /** Logs a warning and returns it with the result; the same text once. */
  warn(text: string): void {
    if (this.#warnings.includes(text)) return;
    this.#warnings.push(text);
    this.log.text(text, "warning");
  }

  /** The result of the run. */
  end(status: RunResult["status"], step: number, checkpoint: CheckpointRow | undefined): RunResult {
    const { totalSteps, notCompared } = this.#plan;
    const { folder } = this.log;
    const warnings = [...this.#warnings];
    return { status, step, totalSteps, checkpoint, folder, warnings, notCompared };
  }

  /** The result of a run that has no step left. */
  async endUnchanged(): Promise<RunResult> {
    await this.keeper.removeRolling();
    return this.end("unchanged", this.startStep, this.row);
  }
}

/**
 * Opens a run's log and its model, and runs `work` with both. Refuses a folder with a run of other settings or data.
 * An error ends the run as failed.
 */
export async function withRun<T>(
  options: RunSettings,
  plan: RunPlan,
  work: (run: OpenRun) => Promise<T>,
): Promise<T> {
  const { folder, service, sinks } = options;
  // The loop has chosen a free folder for "new".
  const ifExists = options.ifExists === "new" ? "fail" : options.ifExists;
  const config = withNulls(plan.config);
  const log = await RunLog.open({ folder, ifExists, sinks, service, config });
  try {
    checkSameSettings(log, config);
    const { training, row } = await openTraining({
      ...options,
      run: log,
      rank: options.loraRank,
      userMetadata: {
        ...(options.recipeName !== undefined && { recipe_name: options.recipeName }),
        ...(plan.rendererName !== undefined && { renderer_name: plan.rendererName }),
      },
    });
    const asked = log.stopRequested;
    const signal = options.signal ? AbortSignal.any([options.signal, asked]) : asked;
    const run = new OpenRun(plan, { options, log, training, row, signal });
    for (const warning of plan.warnings ?? []) run.warn(warning);
    const { startStep } = run;
    if (row?.final === true && startStep < plan.totalSteps) {
      run.warn(
        `this run had ended after ${startStep} steps; it continues to step ${plan.totalSteps}`,
      );
    }
    options.onProgress?.({ step: startStep, totalSteps: plan.totalSteps, metrics: {} });
    return await work(run);
  } catch (error) {
    log.fail(error);
    throw error;
  } finally {
    await log.close();
  }
}

const waysOut: readonly unknown[] = ["resume", "delete", "fail", "new", undefined];

/**
 * The options with the paths of the run: with `ifExists: "new"` the first free folder of FOLDER, FOLDER-2, FOLDER-3, and
 * the last checkpoint where `loadCheckpointPath` is the folder of a run.
 * Every loop calls this first, because settings and other files name them too.
 */
export async function inRunFolder<
  O extends Pick<RunOptions, "folder" | "ifExists" | "loadCheckpointPath">,
>(given: O): Promise<O> {
  if (!waysOut.includes(given.ifExists)) {
    throw new ArgumentError("ifExists", 'must be "resume", "delete", "fail" or "new"');
  }
  const { loadCheckpointPath: start } = given;
  const options =
    start === undefined
      ? given
      : { ...given, loadCheckpointPath: await savedWeights(start, "loadCheckpointPath") };
  if (options.ifExists !== "new") return options;
  let { folder } = options;
  for (let number = 2; (await readRunFolder(folder)).attempts > 0; number++) {
    folder = `${options.folder}-${number}`;
  }
  return { ...options, folder, ifExists: "fail" };
}
