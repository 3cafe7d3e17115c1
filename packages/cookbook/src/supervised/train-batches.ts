import type { CheckpointRow, Line, RunLog } from "tinker-ts/run-log";
import type { Dataset } from "../data/index.js";
import type { Evaluator } from "../evaluation/index.js";
import {
  CheckpointKeeper,
  EarlyStop,
  openTraining,
  warnOfChanges,
  withRunLog,
  type RunResult,
} from "../runs/index.js";
import { EvaluationPlan } from "./evaluation-plan.js";
import type { Objective } from "./objective.js";
import { StepQueue } from "./step-queue.js";
import { loopConfig, type CompleteLoopOptions } from "./train-options.js";
import { placeOf, trainSteps, type Progress } from "./train-steps.js";

/** How a run over batches ended. */
export interface TrainResult extends RunResult {
  /** What the last evaluation found. */
  readonly evaluation: Readonly<Record<string, number>>;
}

/** What is trained. */
export interface BatchParts {
  /** The batches. */
  readonly dataset: Dataset;
  /** What is done with a batch. */
  readonly objective: Objective;
  /** The loop's own evaluators, for instance on data that is kept for tests. */
  readonly evaluators: readonly Evaluator[];
  /** Kept with the run, for those who go on from its weights. */
  readonly rendererName?: string | undefined;
  /** What `config.json` says besides what every loop does. */
  readonly config: Line;
}

/** Goes through data in batches, with any objective: what all loops that learn from given data share. */
export async function trainBatches(
  options: CompleteLoopOptions,
  parts: BatchParts,
): Promise<TrainResult> {
  const config = { ...loopConfig(options), ...parts.config };
  return withRunLog(options, config, ["model_name", "lora_rank"], async (log, signal) => {
    warnOfChanges(log, config, ["log_path", "max_steps", "num_epochs"]);
    return trainRun({ ...options, signal }, parts, log);
  });
}

async function trainRun(
  options: CompleteLoopOptions,
  { dataset, objective, evaluators, rendererName }: BatchParts,
  log: RunLog,
): Promise<TrainResult> {
  const { numEpochs, maxSteps = Number.POSITIVE_INFINITY, onProgress } = options;
  const totalSteps = Math.min(dataset.batchesPerEpoch * numEpochs, maxSteps);
  const { training, row } = await openTraining({
    ...options,
    run: log,
    rank: options.loraRank,
    userMetadata: {
      recipe_name: options.recipeName,
      ...(rendererName !== undefined && { renderer_name: rendererName }),
    },
  });
  const start: Progress = {
    step: (row?.epoch ?? 0) * dataset.batchesPerEpoch + (row?.batch ?? 0),
    tokens: Number(row?.extra?.["elapsed_tokens"] ?? 0),
  };
  const early = new EarlyStop(options.earlyStop ?? { patience: Number.POSITIVE_INFINITY }, row);
  const rest = options.service.createRestClient();
  const resumedFrom = row && { row, step: start.step };
  const keeper = new CheckpointKeeper({ training, rest, run: log, options, resumedFrom });
  const evaluation = new EvaluationPlan(training, options, evaluators);
  const queue = new StepQueue({ log, objective, totalSteps, onProgress });
  const end = (
    status: TrainResult["status"],
    step: number,
    checkpoint: CheckpointRow | undefined,
  ) => {
    const { folder } = log;
    return { status, step, totalSteps, checkpoint, folder, evaluation: evaluation.latest };
  };
  onProgress?.({ step: start.step, totalSteps, metrics: {} });
  if (start.step >= totalSteps || early.isDue) {
    await keeper.removeRolling();
    return end("unchanged", start.step, row);
  }

  const run = { options, training, dataset, objective, totalSteps };
  const { step, tokens } = await trainSteps({ ...run, keeper, early, evaluation, queue }, start);
  const position = placeOf(dataset, step);
  if (step < totalSteps && !early.isDue) {
    return end("interrupted", step, await keeper.saveNow(position, tokens, early.state));
  }
  const last = await evaluation.atEnd(step);
  if (last && Object.keys(last).length > 0) log.log(last, { step });
  const final = await keeper.finish(position, tokens, early.state);
  return end(early.isDue ? "stopped_early" : "completed", step, final);
}
