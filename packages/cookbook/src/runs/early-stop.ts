import type { Line } from "tinker-ts/run-log";

/** When to end a run that stops improving. */
export interface EarlyStopOptions {
  /** The metric of an evaluation to watch. @default "test/nll" */
  readonly metric?: string | undefined;
  /** Evaluations without an improvement until the run ends. */
  readonly patience: number;
  /** The smallest improvement that counts. @default 0 */
  readonly minDelta?: number | undefined;
  /** Whether small or large values are better. @default "min" */
  readonly mode?: "min" | "max" | undefined;
}

const key = "early_stop";

/** Counts evaluations since the best one; its state is stored in rows, so that a resumed run keeps counting. */
export class EarlyStop {
  readonly #options: EarlyStopOptions;
  #best: number | undefined;
  #since = 0;

  constructor(options: EarlyStopOptions, row: { readonly extra?: Line | undefined } | undefined) {
    this.#options = options;
    const state = row?.extra?.[key] as Line | undefined;
    if (typeof state?.["best"] === "number") this.#best = state["best"];
    if (typeof state?.["since"] === "number") this.#since = state["since"];
  }

  /** True when the run should end. */
  get isDue(): boolean {
    return this.#since >= this.#options.patience;
  }

  /** The state for the row of a checkpoint. */
  get state(): Line {
    return { [key]: { best: this.#best ?? null, since: this.#since } };
  }

  /** Adds the metrics of an evaluation. */
  add(metrics: Readonly<Record<string, number>>): void {
    const { metric = "test/nll", minDelta = 0, mode = "min" } = this.#options;
    const value = metrics[metric];
    if (value === undefined) return;
    const gain = (this.#best ?? (mode === "min" ? Infinity : -Infinity)) - value;
    if ((mode === "min" ? gain : -gain) > minDelta) {
      this.#best = value;
      this.#since = 0;
    } else {
      this.#since++;
    }
  }
}
