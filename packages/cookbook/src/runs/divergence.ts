import { TinkerError } from "tinker-ts";

const [farFactor, farDistance] = [3, 2];

/** Watches the loss of a run: one that is not a number ends the run, one far above its start is a warning. */
export class DivergenceCheck {
  readonly #warn: (text: string) => void;
  #first: number | undefined;
  #hasWarned = false;

  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /** Checks the loss of a step. */
  add(step: number, name: string, loss: number | undefined, learningRate: number): void {
    if (loss === undefined) return;
    failUnlessFinite(step, { [name]: loss }, learningRate);
    this.#first ??= loss;
    const isFar = loss > farFactor * this.#first && loss > this.#first + farDistance;
    if (!isFar || this.#hasWarned) return;
    this.#hasWarned = true;
    const [was, is] = [this.#first.toPrecision(3), loss.toPrecision(3)];
    this.#warn(
      `step ${step}: ${name} rose from ${was} to ${is}; the model may diverge. ${adviceOn(learningRate)}`,
    );
  }
}

/** Ends a run with a metric that is not a number: its weights are lost. */
export function failUnlessFinite(
  step: number,
  metrics: Readonly<Record<string, number | undefined>>,
  learningRate: number,
): void {
  for (const [name, value] of Object.entries(metrics)) {
    if (value === undefined || Number.isFinite(value)) continue;
    throw new RunFailedError(
      `Step ${step}: ${name} is ${value}, so the model has diverged. ${adviceOn(learningRate)}`,
    );
  }
}

function adviceOn(learningRate: number): string {
  return `The learning rate was ${learningRate}; start again in another folder with a tenth of it.`;
}

/** A run that cannot go on: its loss is not a number, or every episode of several steps failed. */
export class RunFailedError extends TinkerError {
  override readonly name = "RunFailedError";
  readonly blamesUser = true;

  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, { ...options, code: "run_failed" });
  }
}
