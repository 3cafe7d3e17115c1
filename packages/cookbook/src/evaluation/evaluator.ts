import type { SamplingClient, TrainingClient } from "tinker-ts";
import type { RunLog } from "tinker-ts/run-log";

/** The context of an evaluation during training. */
export interface EvaluationContext {
  /** The model; passes without gradients leave it as it is. */
  readonly training: TrainingClient;
  /** A sampler of the current weights, created on first use and shared by all evaluators. */
  readonly sampler: () => Promise<SamplingClient>;
  /** Steps done. */
  readonly step: number;
  /** The log of the run, for files of the evaluation. */
  readonly log?: RunLog | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** An evaluation during training; the names of its metrics are used unchanged. */
export interface Evaluator {
  readonly name: string;
  evaluate(context: EvaluationContext): Promise<Readonly<Record<string, number>>>;
}

/** Runs evaluators one after the other on the same weights. */
export async function runEvaluators(
  evaluators: readonly Evaluator[],
  context: Omit<EvaluationContext, "sampler">,
): Promise<Record<string, number>> {
  let snapshot: Promise<SamplingClient> | undefined;
  // Ordered like any other request of the model: it holds the weights as they are at this point.
  const sampler = (): Promise<SamplingClient> =>
    (snapshot ??= Promise.resolve(context.training.saveWeightsAndGetSamplingClient()));
  const metrics: Record<string, number> = {};
  for (const evaluator of evaluators) {
    context.signal?.throwIfAborted();
    Object.assign(metrics, await evaluator.evaluate({ ...context, sampler }));
  }
  return metrics;
}
