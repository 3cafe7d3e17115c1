import type { Policy } from "./policy.js";
import {
  GroupFailedError,
  rolloutGroup,
  type ErrorTolerance,
  type RolloutGroupOptions,
} from "./rollout-group.js";
import { mixSeeds } from "./seeds.js";
import type { EnvironmentGroup, TrajectoryGroup } from "./types.js";

/** Options of playing the groups of a run. */
export interface PlayOptions extends Pick<
  RolloutGroupOptions,
  "limits" | "hooks" | "termination" | "signal" | "onError"
> {
  /** The handling of failed episodes. */
  readonly tolerance: ErrorTolerance;
  /** The maximum number of groups in flight. */
  readonly maxConcurrentGroups: number;
}

/** A group that was played, and how long that took. */
export interface PlayedGroup {
  /** The episodes. */
  readonly trajectories: TrajectoryGroup;
  /** Seconds it took. */
  readonly seconds: number;
}

/** Plays groups with limited concurrency, and counts failures. */
export class GroupPlayer {
  readonly #options: PlayOptions;
  readonly #waiting: (() => void)[] = [];
  readonly #errors = new Map<string, number>();
  #free: number;
  #skipped = 0;

  constructor(options: PlayOptions) {
    this.#options = options;
    this.#free = options.maxConcurrentGroups;
  }

  /** Plays a group; undefined when it failed and is skipped. */
  async play(
    policy: Policy,
    group: EnvironmentGroup,
    how: { readonly seeds: readonly number[]; readonly signal: AbortSignal },
  ): Promise<PlayedGroup | undefined> {
    const { tolerance, signal: outer } = this.#options;
    const signal = outer ? AbortSignal.any([outer, how.signal]) : how.signal;
    await this.#enter();
    const started = performance.now();
    try {
      signal.throwIfAborted();
      const trajectories = await rolloutGroup(policy, group, {
        ...this.#options,
        seed: mixSeeds(...how.seeds),
        signal,
        onError: (error) => this.#failed(error),
      });
      return { trajectories, seconds: (performance.now() - started) / 1000 };
    } catch (error) {
      if (signal.aborted || !tolerance.skipsGroup) throw error;
      // A group that could not be played or graded has reported its error already.
      if (!(error instanceof GroupFailedError)) this.#failed(error);
      this.#skipped++;
      return undefined;
    } finally {
      this.#leave();
    }
  }

  /** Failures so far, by the class of the error; classes without failures are absent. */
  metrics(): Record<string, number> {
    const total = [...this.#errors.values()].reduce((sum, count) => sum + count, 0);
    const byType = [...this.#errors].map(([type, count]) => [`rollout_errors/${type}`, count]);
    return {
      ...Object.fromEntries(byType),
      ...(total > 0 ? { "rollout_errors/total": total } : {}),
      ...(this.#skipped > 0 ? { "rollout_errors/groups_skipped": this.#skipped } : {}),
    };
  }

  #failed(error: unknown): void {
    this.#options.onError?.(error);
    const type = error instanceof Error ? error.name : typeof error;
    this.#errors.set(type, (this.#errors.get(type) ?? 0) + 1);
  }

  async #enter(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}
