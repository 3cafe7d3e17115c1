import type { TrainingClient } from "tinker-ts";
import { StepSpans } from "tinker-ts/run-log";
import type { Dataset } from "../data/index.js";
import { adamDefaults, scheduleMultiplier } from "../hyperparameters/index.js";
import type { CheckpointKeeper, EarlyStop } from "../runs/index.js";
import type { EvaluationPlan } from "./evaluation-plan.js";
import { sizeOf } from "./step-metrics.js";
import type { StepQueue } from "./step-queue.js";
import type { CompleteOptions } from "./train-options.js";

/** What the loop works with. */
export interface SupervisedRun {
  readonly options: CompleteOptions;
  /** The highest rate of the schedule. */
  readonly learningRate: number;
  readonly training: TrainingClient;
  readonly dataset: Dataset;
  readonly totalSteps: number;
  readonly keeper: CheckpointKeeper;
  readonly early: EarlyStop;
  readonly evaluation: EvaluationPlan;
  readonly queue: StepQueue;
}

/** How far a run is. */
export interface Progress {
  /** Steps done. */
  readonly step: number;
  /** Positions trained. */
  readonly tokens: number;
}

/** Where a step finds its data. */
export function positionOf({ batchesPerEpoch }: Dataset, step: number) {
  return { step, epoch: Math.floor(step / batchesPerEpoch), batch: step % batchesPerEpoch };
}

/** Trains from a step to the end, to an early stop or to an abort. */
export async function trainSteps(run: SupervisedRun, start: Progress): Promise<Progress> {
  const { options, training, dataset, totalSteps, keeper, early, evaluation, queue } = run;
  const { signal, submitAhead, lrSchedule, warmupSteps } = options;
  let { step, tokens } = start;
  for (; step < totalSteps && !early.isDue; step++) {
    if (signal?.aborted) break;
    const position = positionOf(dataset, step);
    const { epoch, batch } = position;
    const spans = new StepSpans();
    const data = await spans.span("data", () => dataset.batch(epoch, batch));
    const size = sizeOf(data);
    // A save belongs before the step it is named after; requests run in the order they are made.
    keeper.beforeStep(position, { tokens, logged: queue.logged, extra: early.state });
    const found = await spans.span("eval", () => evaluation.before(step));
    if (!found) break;
    early.add(found);

    const multiplier = scheduleMultiplier(lrSchedule, step, totalSteps, { warmupSteps });
    const learningRate = run.learningRate * multiplier;
    const pass = training.forwardBackward(data, "cross_entropy");
    const update = training.optimStep({ ...adamDefaults, ...options.adamParams, learningRate });
    const progress = Math.min(1, (step + 1) / totalSteps);
    const known = { epoch, progress, learning_rate: learningRate, ...found };
    queue.add({ step, data, size, pass, update, spans, known });
    tokens += size.tokens;
    await queue.drain(submitAhead);
  }
  await queue.drain(0);
  return { step, tokens };
}
