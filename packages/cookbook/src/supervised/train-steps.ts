import type { TrainingClient } from "tinker-ts";
import { StepSpans } from "tinker-ts/run-log";
import type { Dataset } from "../data/index.js";
import { adamDefaults, scheduleMultiplier } from "../hyperparameters/index.js";
import type { CheckpointKeeper, EarlyStop } from "../runs/index.js";
import type { EvaluationPlan } from "./evaluation-plan.js";
import type { BatchPlace, Objective } from "./objective.js";
import type { StepQueue } from "./step-queue.js";
import type { CompleteLoopOptions } from "./train-options.js";

/** Everything that the loop uses. */
export interface BatchRun {
  readonly options: CompleteLoopOptions;
  readonly training: TrainingClient;
  readonly dataset: Dataset;
  readonly objective: Objective;
  readonly totalSteps: number;
  readonly keeper: CheckpointKeeper;
  readonly early: EarlyStop;
  readonly evaluation: EvaluationPlan;
  readonly queue: StepQueue;
}

/** The progress of a run. */
export interface Progress {
  /** Steps done. */
  readonly step: number;
  /** Positions trained. */
  readonly tokens: number;
}

/** The batch of a step. */
export function placeOf({ batchesPerEpoch }: Dataset, step: number): BatchPlace {
  return { step, epoch: Math.floor(step / batchesPerEpoch), batch: step % batchesPerEpoch };
}

/** Trains from a step to the last one, to an early stop or to an abort. */
export async function trainSteps(run: BatchRun, start: Progress): Promise<Progress> {
  const { options, training, dataset, objective, totalSteps, keeper, early, evaluation, queue } =
    run;
  const { signal, submitAhead, lrSchedule, warmupSteps } = options;
  let { step, tokens } = start;
  for (; step < totalSteps && !early.isDue; step++) {
    if (signal?.aborted) break;
    const place = placeOf(dataset, step);
    const { epoch, batch } = place;
    const spans = new StepSpans();
    const data = await spans.span("data", () => dataset.batch(epoch, batch));
    // A checkpoint is saved before the step that it is named after; requests run in the order of submission.
    keeper.beforeStep(place, { tokens, logged: queue.logged, extra: early.state });
    const evaluated = await spans.span("eval", () => evaluation.before(step));
    if (!evaluated) break;
    early.add(evaluated);

    const multiplier = scheduleMultiplier(lrSchedule, step, totalSteps, { warmupSteps });
    const learningRate = options.learningRate * multiplier;
    const pass = objective.submit(training, data, place);
    const update = training.optimStep({ ...adamDefaults, ...options.adamParams, learningRate });
    const progress = Math.min(1, (step + 1) / totalSteps);
    const length = data.reduce((sum, { modelInput }) => sum + modelInput.length, 0);
    const size = { num_sequences: data.length, num_tokens: length };
    const metrics = { epoch, progress, learning_rate: learningRate, ...size, ...evaluated };
    queue.add({ place, data, pass, update, spans, metrics });
    tokens += length;
    await queue.drain(submitAhead);
  }
  await queue.drain(0);
  return { step, tokens };
}
