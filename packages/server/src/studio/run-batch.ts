import type { LogChange, LogRecord } from "../store/logs-table.js";
import type { SeriesBatch } from "../store/series-batch.js";
import type { Store } from "../store/store.js";
import { LruMap } from "../lru-map.js";

/** A run while lines of it are stored: read once, written once. */
export class RunBatch {
  /** Its points. */
  readonly series: SeriesBatch;
  readonly #store: Store;
  readonly #writers = new Map<string, { lastN: number; attempt: number }>();
  readonly #changedWriters = new Set<string>();
  #log: LogRecord;
  #change: LogChange = {};
  #lineBytes = 0;

  constructor(store: Store, log: LogRecord) {
    this.#store = store;
    this.#log = log;
    this.series = store.series.batch(log.logId);
  }

  /** The run as it is after the changes so far. */
  get log(): LogRecord {
    return this.#log;
  }

  /** Notes text that was stored. */
  addLineBytes(bytes: number): void {
    this.#lineBytes += bytes;
  }

  /** Text that was stored since. */
  get lineBytes(): number {
    return this.#lineBytes;
  }

  /** Notes a change. */
  set(change: LogChange): void {
    Object.assign(this.#change, change);
    this.#log = { ...this.#log, ...change };
  }

  /** The last line of a writer, and its attempt. */
  writer(name: string): { lastN: number; attempt: number } | undefined {
    const known = this.#writers.get(name) ?? this.#store.logs.writer(this.#log.logId, name);
    if (known) this.#writers.set(name, known);
    return known;
  }

  /** Notes the last line of a writer. */
  setWriter(name: string, lastN: number, attempt: number): void {
    this.#writers.set(name, { lastN, attempt });
    this.#changedWriters.add(name);
  }

  /** The last line of each writer that is known. */
  get stored(): Record<string, number> {
    return Object.fromEntries([...this.#writers].map(([name, { lastN }]) => [name, lastN]));
  }

  /** Writes what was noted. */
  write(): void {
    const { logs } = this.#store;
    this.series.write();
    logs.change(this.#log.logId, this.#change);
    if (this.#lineBytes > 0) this.#store.lines.addBytes(this.#log.logId, this.#lineBytes);
    for (const name of this.#changedWriters) {
      const { lastN, attempt } = this.#writers.get(name)!;
      logs.setWriter(this.#log.logId, name, lastN, attempt);
    }
  }
}

/** The kind of a run, as far as it follows from the names in its configuration. */
export function kindOf(config: unknown): string {
  if (typeof config !== "object" || config === null) return "unknown";
  const has = (name: string): boolean => Object.hasOwn(config, name);
  if (has("dpo_beta") || has("preference_loss")) return "preference";
  if (has("loss_fn") || has("group_size") || has("groups_per_batch")) return "rl";
  return has("num_epochs") ? "supervised" : "unknown";
}

/** How far the metrics of an attempt have come. */
interface Standing {
  /** Where lines without a step belong. */
  step: number;
  /** The last x of each metric. */
  readonly keys: Map<string, number>;
}

/** Runs with a remembered step; it can be read again. */
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

  /** Forgets the steps of lines that were rolled back. */
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
