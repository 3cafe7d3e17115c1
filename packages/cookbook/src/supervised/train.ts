import { RunLog, type CheckpointRow } from "tinker-ts/run-log";
import { recommendedLearningRate } from "../hyperparameters/index.js";
import {
  CheckpointKeeper,
  checkSameRun,
  EarlyStop,
  openTraining,
  warnOfChanges,
} from "../runs/index.js";
import { EvaluationPlan } from "./evaluation-plan.js";
import { isPrepared, prepareData, type PreparedData } from "./prepare-data.js";
import { StepQueue } from "./step-queue.js";
import {
  completeOptions,
  toConfig,
  type CompleteOptions,
  type TrainOptions,
} from "./train-options.js";
import { positionOf, trainSteps, type Progress } from "./train-steps.js";

/** How a run ended. */
export interface TrainResult {
  /** `unchanged`: there was nothing left to do. */
  readonly status: "completed" | "stopped_early" | "interrupted" | "unchanged";
  /** Steps done, those of earlier attempts included. */
  readonly step: number;
  readonly totalSteps: number;
  /** The last checkpoint: the final one, or the one to go on from. Undefined when nothing was trained. */
  readonly checkpoint: CheckpointRow | undefined;
  readonly folder: string;
  /** What the last evaluation found. */
  readonly evaluation: Readonly<Record<string, number>>;
}

/**
 * Fine-tunes a model on examples: everything from a file of conversations to saved weights.
 *
 * A folder that holds a run is gone on with; the result is the same as if it had never stopped.
 */
export async function train(options: TrainOptions): Promise<TrainResult> {
  const complete = completeOptions(options);
  const { model } = complete;
  const learningRate =
    complete.learningRate === "auto" ? recommendedLearningRate(model) : complete.learningRate;
  const { data, folder, ifExists, sinks } = complete;
  const prepared = isPrepared(data) ? data : await prepareData({ ...complete, data });
  const config = toConfig(complete, learningRate, prepared);
  const log = await RunLog.open({ folder, ifExists, sinks, config });
  try {
    checkSameRun(log, { model_name: model, lora_rank: complete.loraRank });
    warnOfChanges(log, config, ["log_path", "max_steps", "num_epochs"]);
    return await trainRun(complete, { log, prepared, learningRate });
  } catch (error) {
    log.text(String(error), "error");
    throw error;
  } finally {
    await log.close();
  }
}

async function trainRun(
  options: CompleteOptions,
  parts: { readonly log: RunLog; readonly prepared: PreparedData; readonly learningRate: number },
): Promise<TrainResult> {
  const { log, prepared, learningRate } = parts;
  const { dataset, tokenizer, renderer } = prepared;
  const { numEpochs, maxSteps = Number.POSITIVE_INFINITY, onProgress } = options;
  const totalSteps = Math.min(dataset.batchesPerEpoch * numEpochs, maxSteps);
  const { training, row } = await openTraining({
    ...options,
    run: log,
    rank: options.loraRank,
    userMetadata: {
      recipe_name: options.recipeName,
      ...(renderer && { renderer_name: renderer.name }),
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
  const evaluation = new EvaluationPlan(training, options, prepared);
  const queue = new StepQueue({ log, tokenizer, totalSteps, onProgress });
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

  const run = { options, learningRate, training, dataset, totalSteps };
  const { step, tokens } = await trainSteps({ ...run, keeper, early, evaluation, queue }, start);
  const position = positionOf(dataset, step);
  if (step < totalSteps && !early.isDue) {
    return end("interrupted", step, await keeper.saveNow(position, tokens, early.state));
  }
  const last = await evaluation.atEnd(step);
  if (last && Object.keys(last).length > 0) log.log(last, { step });
  const final = await keeper.finish(position, tokens, early.state);
  return end(early.isDue ? "stopped_early" : "completed", step, final);
}
