import type { TrainingClient } from "tinker-ts";
import { StepSpans } from "tinker-ts/run-log";
import type { Dataset } from "../data/index.js";
import { adamDefaults, scheduleMultiplier } from "../hyperparameters/index.js";
import type { CheckpointKeeper, EarlyStop } from "../runs/index.js";
import type { EvaluationPlan } from "./evaluation-plan.js";
import type { BatchPlace, Objective } from "./objective.js";
import type { StepQueue } from "./step-queue.js";
import type { CompleteLoopOptions } from "./train-options.js";

/** What the loop works with. */
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

/** How far a run is. */
export interface Progress {
  /** Steps done. */
  readonly step: number;
  /** Positions trained. */
  readonly tokens: number;
}

/** Where a step finds its data. */
export function placeOf({ batchesPerEpoch }: Dataset, step: number): BatchPlace {
  return { step, epoch: Math.floor(step / batchesPerEpoch), batch: step % batchesPerEpoch };
}

/** Trains from a step to the end, to an early stop or to an abort. */
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
    // A save belongs before the step it is named after; requests run in the order they are made.
    keeper.beforeStep(place, { tokens, logged: queue.logged, extra: early.state });
    const found = await spans.span("eval", () => evaluation.before(step));
    if (!found) break;
    early.add(found);

    const multiplier = scheduleMultiplier(lrSchedule, step, totalSteps, { warmupSteps });
    const learningRate = options.learningRate * multiplier;
    const pass = objective.submit(training, data, place);
    const update = training.optimStep({ ...adamDefaults, ...options.adamParams, learningRate });
    const progress = Math.min(1, (step + 1) / totalSteps);
    const length = data.reduce((sum, { modelInput }) => sum + modelInput.length, 0);
    const size = { num_sequences: data.length, num_tokens: length };
    const known = { epoch, progress, learning_rate: learningRate, ...size, ...found };
    queue.add({ place, data, pass, update, spans, known });
    tokens += length;
    await queue.drain(submitAhead);
  }
  await queue.drain(0);
  return { step, tokens };
}
