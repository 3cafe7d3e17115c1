import type { TrainingClient } from "tinker-ts";
import { runEvaluators, type Evaluator } from "../evaluation/index.js";
import type { CompleteLoopOptions } from "./train-options.js";

type Numbers = Readonly<Record<string, number>>;

/** The schedule of evaluators, and their latest metrics. Those of the loop itself, on held-out data, run first. */
export class EvaluationPlan {
  readonly #training: TrainingClient;
  readonly #options: CompleteLoopOptions;
  readonly #regular: readonly Evaluator[];
  #latest: Numbers = {};

  constructor(training: TrainingClient, options: CompleteLoopOptions, own: readonly Evaluator[]) {
    this.#training = training;
    this.#options = options;
    this.#regular = [...own, ...(options.evaluators ?? [])];
  }

  /** The metrics of the last run of every evaluator. */
  get latest(): Numbers {
    return this.#latest;
  }

  /** Runs the evaluators that are due before a step; undefined when the signal aborted them. */
  async before(step: number): Promise<Numbers | undefined> {
    const { evalEvery, infrequentEvalEvery, infrequentEvaluators = [] } = this.#options;
    const isDue = (every: number): boolean => every > 0 && step % every === 0;
    return this.#run(step, [
      ...(isDue(evalEvery) ? this.#regular : []),
      ...(isDue(infrequentEvalEvery) ? infrequentEvaluators : []),
    ]);
  }

  /** Runs the regular evaluators on the trained model; undefined when the signal aborted them. */
  async atEnd(step: number): Promise<Numbers | undefined> {
    return this.#run(step, this.#regular);
  }

  async #run(step: number, evaluators: readonly Evaluator[]): Promise<Numbers | undefined> {
    const { signal } = this.#options;
    try {
      const metrics = await runEvaluators(evaluators, { training: this.#training, step, signal });
      this.#latest = { ...this.#latest, ...metrics };
      return metrics;
    } catch (error) {
      // The loop saves the steps before the abort.
      if (signal?.aborted) return undefined;
      throw error;
    }
  }
}
