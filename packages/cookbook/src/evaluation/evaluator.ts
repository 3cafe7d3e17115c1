import type { SamplingClient, TrainingClient } from "tinker-ts";
import type { RunLog } from "tinker-ts/run-log";

/** What an evaluator may use while a model is being trained. */
export interface EvaluationContext {
  /** The model; passes without gradients leave it as it is. */
  readonly training: TrainingClient;
  /** A sampler of the weights as they are now: made when first asked for, shared by all evaluators. */
  readonly sampler: () => Promise<SamplingClient>;
  /** Steps done. */
  readonly step: number;
  /** Where the run keeps what it does; files of an evaluation belong to its step. */
  readonly log?: RunLog | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Something that is found out about a model from time to time; the names of its metrics are used as they are. */
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
