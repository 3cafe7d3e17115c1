import { LruMap } from "../lru-map.js";
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
  readonly #runs = new LruMap<string, Map<number, Standing>>(maxRuns);

  constructor(store: Store) {
    this.#store = store;
  }

  /** The standing of an attempt; after a restart it is read from what was stored. */
  of(run: string, attempt: number): Standing {
    const attempts = this.#runs.get(run) ?? this.#read(run);
    this.#runs.set(run, attempts);
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
    for (const { attempt, lastX, key } of this.#store.series.list(run)) {
      const standing = attempts.get(attempt) ?? { step: 0, keys: new Map<string, number>() };
      attempts.set(attempt, standing);
      standing.step = Math.max(standing.step, lastX);
      standing.keys.set(key, lastX);
    }
    return attempts;
  }
}
