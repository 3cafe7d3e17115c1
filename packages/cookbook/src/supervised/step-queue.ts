import type { Datum, ForwardBackwardOutput, OptimStepResponse } from "tinker-ts";
import type { RunLog, StepSpans } from "tinker-ts/run-log";
import type { RunOptions } from "../runs/index.js";
import type { BatchPlace, Objective } from "./objective.js";

/** A step that is submitted and whose results are to come. */
export interface SubmittedStep {
  readonly place: BatchPlace;
  readonly data: readonly Datum[];
  readonly pass: PromiseLike<ForwardBackwardOutput>;
  readonly update: PromiseLike<OptimStepResponse>;
  readonly spans: StepSpans;
  /** Metrics that are known before the step has run. */
  readonly known: Readonly<Record<string, number>>;
}

/** Where finished steps are told. */
export interface StepQueueParts {
  readonly log: RunLog;
  readonly objective: Objective;
  readonly totalSteps: number;
  readonly onProgress: RunOptions["onProgress"];
}

interface Waiting extends SubmittedStep {
  readonly logged: Promise<void>;
  readonly settle: (failure?: { readonly error: unknown }) => void;
}

/** Steps under way, which keep the server busy; their results are logged in the order of submission. */
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

  /** Takes a step that has been submitted. */
  add(step: SubmittedStep): void {
    let settle!: Waiting["settle"];
    const logged = new Promise<void>((resolve, reject) => {
      settle = (failure) => (failure ? reject(failure.error) : resolve());
    });
    // Nobody needs to listen: who drains the queue is told as well.
    logged.catch(() => {});
    this.#waiting.push({ ...step, logged, settle });
  }

  /** Waits for the oldest steps until no more than `most` are under way. */
  async drain(most: number): Promise<void> {
    while (this.#waiting.length > most) await this.#finish(this.#waiting.shift()!);
  }

  async #finish({ settle, ...submitted }: Waiting): Promise<void> {
    const { log, objective, totalSteps, onProgress } = this.#parts;
    const { place, spans, data } = submitted;
    const { step } = place;
    try {
      const [pass, update] = await spans.span("step", () =>
        Promise.all([submitted.pass, submitted.update]),
      );
      const metrics = {
        ...submitted.known,
        ...objective.metrics(data, pass, place),
        ...update.metrics,
        ...spans.metrics(),
      };
      log.log(metrics, { step });
      log.logSpans(step, spans.spans);
      onProgress?.({ step: step + 1, totalSteps, metrics });
      settle();
    } catch (error) {
      settle({ error });
      throw error;
    }
  }
}
