import type { TrainingClient } from "tinker-ts";
import { runEvaluators, type Evaluator } from "../evaluation/index.js";
import type { CompleteLoopOptions } from "./train-options.js";

type Numbers = Readonly<Record<string, number>>;

/** Which evaluators run when, and what they found. The loop's own, on data kept for tests, come first. */
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

  /** What every evaluator found when it last ran. */
  get latest(): Numbers {
    return this.#latest;
  }

  /** Runs what is due before a step; undefined when the signal ended it. */
  async before(step: number): Promise<Numbers | undefined> {
    const { evalEvery, infrequentEvalEvery, infrequentEvaluators = [] } = this.#options;
    const isDue = (every: number): boolean => every > 0 && step % every === 0;
    return this.#run(step, [
      ...(isDue(evalEvery) ? this.#regular : []),
      ...(isDue(infrequentEvalEvery) ? infrequentEvaluators : []),
    ]);
  }

  /** Runs the regular evaluators on the trained model; undefined when the signal ended it. */
  async atEnd(step: number): Promise<Numbers | undefined> {
    return this.#run(step, this.#regular);
  }

  async #run(step: number, evaluators: readonly Evaluator[]): Promise<Numbers | undefined> {
    const { signal } = this.#options;
    try {
      const found = await runEvaluators(evaluators, { training: this.#training, step, signal });
      this.#latest = { ...this.#latest, ...found };
      return found;
    } catch (error) {
      // What was trained before is saved all the same.
      if (signal?.aborted) return undefined;
      throw error;
    }
  }
}
