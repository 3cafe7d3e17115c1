import type { LogChange, LogRecord } from "../store/logs-table.js";
import type { Store } from "../store/store.js";

/** A run while a batch tells of it: read once, written once. */
export class ToldRun {
  readonly #store: Store;
  readonly #writers = new Map<string, { lastN: number; attempt: number }>();
  readonly #told = new Set<string>();
  #log: LogRecord;
  #change: LogChange = {};

  constructor(store: Store, log: LogRecord) {
    this.#store = store;
    this.#log = log;
  }

  /** The run as it is after what was told so far. */
  get log(): LogRecord {
    return this.#log;
  }

  /** Notes a change. */
  set(change: LogChange): void {
    Object.assign(this.#change, change);
    this.#log = { ...this.#log, ...change };
  }

  /** How far a writer is. */
  writer(name: string): { lastN: number; attempt: number } | undefined {
    const known = this.#writers.get(name) ?? this.#store.logs.writer(this.#log.logId, name);
    if (known) this.#writers.set(name, known);
    return known;
  }

  /** Notes how far a writer is. */
  setWriter(name: string, lastN: number, attempt: number): void {
    this.#writers.set(name, { lastN, attempt });
    this.#told.add(name);
  }

  /** The last line of each writer that is known. */
  get stored(): Record<string, number> {
    return Object.fromEntries([...this.#writers].map(([name, { lastN }]) => [name, lastN]));
  }

  /** Writes what was noted. */
  write(): void {
    const { logs } = this.#store;
    logs.change(this.#log.logId, this.#change);
    for (const name of this.#told) {
      const { lastN, attempt } = this.#writers.get(name)!;
      logs.setWriter(this.#log.logId, name, lastN, attempt);
    }
  }
}
