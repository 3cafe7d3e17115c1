import type { LogChange, LogRecord } from "../store/logs-table.js";
import type { SeriesBatch } from "../store/series-batch.js";
import type { Store } from "../store/store.js";

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

/** What is done, as far as the names in a configuration tell. */
export function kindOf(config: unknown): string {
  if (typeof config !== "object" || config === null) return "unknown";
  const has = (name: string): boolean => Object.hasOwn(config, name);
  if (has("dpo_beta") || has("preference_loss")) return "preference";
  if (has("loss_fn") || has("group_size") || has("groups_per_batch")) return "rl";
  return has("num_epochs") ? "supervised" : "unknown";
}
