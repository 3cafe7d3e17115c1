import type { Line } from "tinker-ts/run-log";
import type { Dataset } from "../data/index.js";
import type { Evaluator } from "../evaluation/index.js";
import {
  DivergenceCheck,
  EarlyStop,
  learningRateWarning,
  withRun,
  type OpenRun,
  type RunResult,
} from "../runs/index.js";
import { EvaluationPlan } from "./evaluation-plan.js";
import type { Objective } from "./objective.js";
import { StepQueue } from "./step-queue.js";
import { loopConfig, type CompleteLoopOptions } from "./train-options.js";
import { placeOf, trainSteps } from "./train-steps.js";

/** The result of a run over batches. */
export interface TrainResult extends RunResult {
  /** Metrics of the last evaluation. */
  readonly evaluation: Readonly<Record<string, number>>;
}

/** What a run over batches trains. */
export interface BatchParts {
  /** The batches. */
  readonly dataset: Dataset;
  /** Passes over the data where the options have no number. @default 1 */
  readonly numEpochs?: number | undefined;
  /** What is done with a batch. */
  readonly objective: Objective;
  /** Evaluators of the loop itself, for instance on held-out data. */
  readonly evaluators: readonly Evaluator[];
  /** The chat format, stored with the model for runs that start from its weights. */
  readonly rendererName?: string | undefined;
  /** Settings for `config.json` besides those of every loop. */
  readonly config: Line;
  /** Inputs that have no content to compare when the run is resumed. */
  readonly notCompared?: readonly string[] | undefined;
  /** Problems of the data that do not stop the run. */
  readonly warnings?: readonly string[] | undefined;
}

const fewSteps = 5;

/** Trains on batches with any objective: the common part of all loops that learn from given data. */
export async function trainBatches(
  options: CompleteLoopOptions,
  parts: BatchParts,
): Promise<TrainResult> {
  const { maxSteps = Number.POSITIVE_INFINITY, numEpochs = parts.numEpochs ?? 1 } = options;
  const { batchesPerEpoch } = parts.dataset;
  const totalSteps = Math.min(batchesPerEpoch * numEpochs, maxSteps);
  const plan = {
    config: { ...loopConfig({ ...options, numEpochs }), ...parts.config },
    totalSteps,
    batchesPerEpoch,
    rendererName: parts.rendererName,
    notCompared: [
      ...(parts.notCompared ?? []),
      ...(typeof options.lrSchedule === "function" ? ["lrSchedule"] : []),
    ],
    warnings: [
      ...(parts.warnings ?? []),
      learningRateWarning(options.model, options.learningRate) ?? [],
      stepsWarning(totalSteps, options.maxSteps !== undefined),
    ].flat(),
  };
  return withRun(options, plan, (run) => trainRun(options, parts, run, totalSteps));
}

function stepsWarning(totalSteps: number, isChosen: boolean): string[] {
  if (totalSteps >= fewSteps || (isChosen && totalSteps > 1)) return [];
  const steps =
    totalSteps === 1 ? "1 step: expect no change" : `${totalSteps} steps: expect little`;
  return [`${steps}; raise numEpochs or lower batchSize`];
}

async function trainRun(
  given: CompleteLoopOptions,
  { dataset, objective, evaluators }: BatchParts,
  run: OpenRun,
  totalSteps: number,
): Promise<TrainResult> {
  const { log, training, keeper, row, startStep, signal } = run;
  const options = { ...given, signal };
  const early = new EarlyStop(options.earlyStop ?? { patience: Number.POSITIVE_INFINITY }, row);
  const evaluation = new EvaluationPlan(training, options, evaluators);
  if (startStep >= totalSteps || early.isDue) {
    return { ...(await run.endUnchanged()), evaluation: evaluation.latest };
  }
  const divergence = new DivergenceCheck((text) => run.warn(text));
  const { onProgress } = options;
  const queue = new StepQueue({ log, objective, divergence, totalSteps, onProgress });
  const { step, tokens } = await trainSteps(
    { options, training, dataset, objective, totalSteps, keeper, early, evaluation, queue },
    { step: startStep, tokens: run.startTokens },
  );
  const position = placeOf(dataset, step);
  if (step < totalSteps && !early.isDue) {
    const saved = await keeper.saveNow(position, tokens, early.state);
    return { ...run.end("interrupted", step, saved), evaluation: evaluation.latest };
  }
  const last = await evaluation.atEnd(step);
  if (last && Object.keys(last).length > 0) log.log(last, { step });
  const final = await keeper.finish(position, tokens, early.state);
  const status = early.isDue ? "stopped_early" : "completed";
  return { ...run.end(status, step, final), evaluation: evaluation.latest };
}
