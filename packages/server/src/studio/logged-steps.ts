import type { Store } from "../store/store.js";

/** How far the metrics of an attempt have come. */
interface Standing {
  /** Where lines without a step belong. */
  step: number;
  /** The last x of each metric. */
  readonly keys: Map<string, number>;
}

/** Runs whose standing is kept at hand; it can be found out again. */
const maxRuns = 256;

/**
 * Where a logged line belongs: which attempt, which x. Within an attempt a metric never goes back, which is what
 * columns rely on; one that does has begun anew, whatever its program says.
 */
export class LoggedSteps {
  readonly #store: Store;
  readonly #runs = new Map<string, Map<number, Standing>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The standing of an attempt; after a restart it is read from what was stored. */
  of(run: string, attempt: number): Standing {
    const attempts = this.#runs.get(run) ?? this.#read(run);
    this.#runs.delete(run);
    this.#runs.set(run, attempts);
    if (this.#runs.size > maxRuns) this.#runs.delete(this.#runs.keys().next().value!);
    const standing = attempts.get(attempt) ?? { step: 0, keys: new Map<string, number>() };
    attempts.set(attempt, standing);
    return standing;
  }

  /** Forgets what lines have told that were undone since. */
  forget(run: string): void {
    this.#runs.delete(run);
  }

  #read(run: string): Map<number, Standing> {
    const attempts = new Map<number, Standing>();
    const note = (attempt: number, x: number, keys: Iterable<string>): void => {
      const standing = attempts.get(attempt) ?? { step: 0, keys: new Map<string, number>() };
      attempts.set(attempt, standing);
      standing.step = Math.max(standing.step, x);
      for (const key of keys) standing.keys.set(key, x);
    };
    const { points } = this.#store;
    for (const { attempt, lastX, key } of points.series(run)) note(attempt, lastX, [key]);
    for (const { attempt, x, values } of points.rows(run, Number.MAX_SAFE_INTEGER)) {
      note(attempt, x, Object.keys(values));
    }
    return attempts;
  }
}
