import type { Datum, ForwardBackwardOutput, OptimStepResponse } from "tinker-ts";
import type { RunLog, StepSpans } from "tinker-ts/run-log";
import type { DivergenceCheck, RunOptions } from "../runs/index.js";
import type { BatchPlace, Objective } from "./objective.js";

/** A submitted step that has no results yet. */
export interface SubmittedStep {
  readonly place: BatchPlace;
  readonly data: readonly Datum[];
  readonly pass: PromiseLike<ForwardBackwardOutput>;
  readonly update: PromiseLike<OptimStepResponse>;
  readonly spans: StepSpans;
  /** Metrics that do not depend on the results. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** The log and the callbacks for finished steps. */
export interface StepQueueParts {
  readonly log: RunLog;
  readonly objective: Objective;
  readonly divergence: DivergenceCheck;
  readonly totalSteps: number;
  readonly onProgress: RunOptions["onProgress"];
}

interface Waiting extends SubmittedStep {
  readonly logged: Promise<void>;
  readonly settle: (failure?: { readonly error: unknown }) => void;
}

/** Steps in flight, which keep the server busy; their results are logged in the order of submission. */
export class StepQueue {
  readonly #parts: StepQueueParts;
  readonly #waiting: Waiting[] = [];

  constructor(parts: StepQueueParts) {
    this.#parts = parts;
  }

  /** Resolves when every step so far is in the log. */
  get logged(): Promise<void> {
    return this.#waiting.at(-1)?.logged ?? Promise.resolve();
  }

  /** Adds a submitted step. */
  add(step: SubmittedStep): void {
    let settle!: Waiting["settle"];
    const logged = new Promise<void>((resolve, reject) => {
      settle = (failure) => (failure ? reject(failure.error) : resolve());
    });
    // Without a listener a rejection ends the process; the caller that drains the queue receives it too.
    logged.catch(() => {});
    this.#waiting.push({ ...step, logged, settle });
  }

  /** Waits for the oldest steps until at most `most` are in flight. */
  async drain(most: number): Promise<void> {
    while (this.#waiting.length > most) await this.#finish(this.#waiting.shift()!);
  }

  async #finish({ settle, ...submitted }: Waiting): Promise<void> {
    const { log, objective, divergence, totalSteps, onProgress } = this.#parts;
    const { place, spans, data } = submitted;
    const { step } = place;
    try {
      const [pass, update] = await spans.span("step", () =>
        Promise.all([submitted.pass, submitted.update]),
      );
      const metrics = {
        ...submitted.metrics,
        ...objective.metrics(data, pass, place),
        ...update.metrics,
        ...spans.metrics(),
      };
      log.log(metrics, { step });
      log.logSpans(step, spans.spans);
      onProgress?.({ step: step + 1, totalSteps, metrics });
      const { lossMetric } = objective;
      divergence.add(step, lossMetric, metrics[lossMetric], submitted.metrics["learning_rate"]!);
      settle();
    } catch (error) {
      settle({ error });
      throw error;
    }
  }
}
