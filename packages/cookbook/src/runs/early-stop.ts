import type { Line } from "tinker-ts/run-log";

/** When training is not worth going on. */
export interface EarlyStopOptions {
  /** The metric of an evaluation that decides. @default "test/nll" */
  readonly metric?: string | undefined;
  /** Evaluations without a better value until the run ends. */
  readonly patience: number;
  /** How much better a value must be to count. @default 0 */
  readonly minDelta?: number | undefined;
  /** Whether small or large values are good. @default "min" */
  readonly mode?: "min" | "max" | undefined;
}

const key = "early_stop";

/** Counts evaluations since the best one; its state goes into rows, so that a resumed run counts on. */
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

  /** Whether the run has had enough. */
  get isDue(): boolean {
    return this.#since >= this.#options.patience;
  }

  /** For the row of a checkpoint. */
  get state(): Line {
    return { [key]: { best: this.#best ?? null, since: this.#since } };
  }

  /** Takes the metrics of an evaluation. */
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
