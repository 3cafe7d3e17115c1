import { RunFailedError } from "../runs/index.js";
import { isConstant } from "./advantages.js";
import type { PolicyDatum } from "./policy-datum.js";
import type { TrajectoryGroup } from "./types.js";

/** A step as far as it decides whether something was learned. */
export interface CheckedStep {
  readonly step: number;
  /** The groups that were played. */
  readonly groups: readonly TrajectoryGroup[];
  /** The data that were trained. */
  readonly data: readonly PolicyDatum[];
  /** Groups without any result, because their episodes failed. */
  readonly skipped: number;
}

interface CheckOptions {
  readonly warn: (text: string) => void;
  /** Steps in a row with errors only until the run fails; 0 means never. */
  readonly maxFailedSteps: number;
  readonly maxTokens: number;
  /** False for a loss that ignores advantages. */
  readonly learnsFromAdvantages: boolean;
}

/**
 * Finds runs by rewards that learn nothing: failing graders, equal rewards, answers that are cut. The first of each kind
 * is a warning at once, and a run without any signal ends with a summary.
 */
export class LearningCheck {
  readonly #options: CheckOptions;
  readonly #warned = new Set<string>();
  #firstError: unknown;
  #errors = 0;
  #steps = 0;
  #stepsWithSignal = 0;
  #failedSteps = 0;
  #groups = 0;
  #skippedGroups = 0;
  #equalGroups = 0;
  #turns = 0;
  #cutTurns = 0;

  constructor(options: CheckOptions) {
    this.#options = options;
  }

  /** Steps in a row in which every group failed. */
  get failedSteps(): number {
    return this.#failedSteps;
  }

  /** Takes the error of an episode or of a grader; the first one is shown with its stack. */
  failed(error: unknown): void {
    this.#errors++;
    if (this.#errors > 1) return;
    this.#firstError = error;
    this.#options.warn(`an episode failed: ${stackOf(error)}`);
  }

  /** Takes a step. */
  add({ step, groups, data, skipped }: CheckedStep): void {
    const turns = groups.flatMap(({ trajectories }) =>
      trajectories.flatMap(({ transitions }) => transitions),
    );
    const cut = turns.filter(({ action }) => action.stopReason === "length").length;
    const equal = groups.filter(isConstant).length;
    this.#steps++;
    this.#groups += groups.length;
    this.#skippedGroups += skipped;
    this.#equalGroups += equal;
    this.#turns += turns.length;
    this.#cutTurns += cut;
    this.#failedSteps = groups.length === 0 && skipped > 0 ? this.#failedSteps + 1 : 0;
    const hasSignal = this.#hasSignal(data);
    if (hasSignal) this.#stepsWithSignal++;
    const isCut = turns.length > 0 && cut === turns.length;
    if (isCut) this.#warnOnce("cut", step, `every answer was cut at ${this.#limit()}`);
    if (hasSignal || groups.length === 0) return;
    if (data.length === 0 && equal < groups.length) {
      this.#warnOnce("masked", step, "there was nothing to train, so the model was not updated");
    } else {
      const which = groups.length === 1 ? "the group" : `all ${groups.length} groups`;
      const text = `the rewards within ${which} were equal, so there was nothing to learn`;
      this.#warnOnce("equal", step, text);
    }
  }

  /** Ends the run when too many steps had errors only. */
  failAfterErrors(): void {
    const { maxFailedSteps } = this.#options;
    if (maxFailedSteps === 0 || this.#failedSteps < maxFailedSteps) return;
    this.fail(`every episode of ${this.#failedSteps} steps in a row failed`);
  }

  /** Ends the run with the first error of an episode. */
  fail(what: string): never {
    throw new RunFailedError(
      `The run was ended because ${what}. The first error was: ${stackOf(this.#firstError)}`,
      { cause: this.#firstError },
    );
  }

  /** Judges the whole attempt at its end; fails when every episode failed. */
  finish(): void {
    if (this.#groups === 0 && this.#errors > 0) this.fail("every episode failed");
    if (this.#steps === 0) return;
    const cutShare = this.#turns === 0 ? 0 : this.#cutTurns / this.#turns;
    const cut = `${Math.round(cutShare * 100)} % of answers were cut at ${this.#limit()}`;
    const skipped = `${this.#skippedGroups} groups failed`;
    if (this.#stepsWithSignal === 0) {
      const reasons = [
        `${this.#equalGroups} of ${this.#groups} groups had equal rewards`,
        ...(this.#cutTurns > 0 ? [cut] : []),
        ...(this.#skippedGroups > 0 ? [skipped] : []),
      ];
      this.#options.warn(`nothing was learned: ${reasons.join("; ")}`);
    } else if (cutShare >= 0.5) {
      this.#options.warn(`${cut}; a higher limit may be needed`);
    } else if (this.#skippedGroups > 0) {
      this.#options.warn(`${skipped} and were left out`);
    }
  }

  #hasSignal(data: readonly PolicyDatum[]): boolean {
    if (!this.#options.learnsFromAdvantages) return data.length > 0;
    return data.some(({ advantages, mask }) =>
      advantages.some((advantage, at) => advantage !== 0 && mask[at] === 1),
    );
  }

  #limit(): string {
    const { maxTokens } = this.#options;
    return `${maxTokens} token${maxTokens === 1 ? "" : "s"}`;
  }

  #warnOnce(kind: string, step: number, text: string): void {
    if (this.#warned.has(kind)) return;
    this.#warned.add(kind);
    this.#options.warn(`step ${step}: ${text}`);
  }
}

/** An error with the first lines of its stack, and of the error that caused it. */
export function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const stack = (error.stack ?? `${error.name}: ${error.message}`).split("\n").slice(0, 6);
  return stack.join("\n");
}
