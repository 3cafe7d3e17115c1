/** Kinds of work that share the processor. */
export type WorkKind = "train" | "sample";

const kinds: readonly WorkKind[] = ["train", "sample"];

/**
 * Lets kinds of work alternate so that each gets about the same time.
 *
 * A worker enters, takes a turn before every piece of work, and leaves at the end. One piece runs at
 * a time. While both kinds want to work, the one that has used less time goes first; within a kind, turns
 * go round. A kind that was idle starts level with the other: it cannot save up time.
 */
export class FairTurns {
  readonly #now: () => number;
  readonly #usedMs: Record<WorkKind, number> = { train: 0, sample: 0 };
  readonly #present: Record<WorkKind, number> = { train: 0, sample: 0 };
  readonly #waiting: { kind: WorkKind; start: () => void }[] = [];
  #current: { kind: WorkKind; startedMs: number } | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  enter(kind: WorkKind): TurnTaker {
    this.#charge();
    if (this.#present[kind] === 0) {
      this.#usedMs[kind] = Math.max(...kinds.map((other) => this.#usedMs[other]));
    }
    this.#present[kind] += 1;
    let working = false;
    const end = (): void => {
      if (!working) return;
      working = false;
      this.#charge();
      this.#current = undefined;
    };
    return {
      take: () => {
        end();
        return new Promise<void>((resolve) => {
          const start = (): void => {
            working = true;
            resolve();
          };
          this.#waiting.push({ kind, start });
          this.#startNext();
        });
      },
      leave: () => {
        end();
        this.#present[kind] -= 1;
        this.#startNext();
      },
    };
  }

  /** Adds the time of the current piece so far. */
  #charge(): void {
    if (this.#current === undefined) return;
    const now = this.#now();
    this.#usedMs[this.#current.kind] += now - this.#current.startedMs;
    this.#current.startedMs = now;
  }

  #startNext(): void {
    if (this.#current !== undefined) return;
    const order = kinds.toSorted((a, b) => this.#usedMs[a] - this.#usedMs[b]);
    for (const kind of order) {
      const index = this.#waiting.findIndex((entry) => entry.kind === kind);
      const [entry] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (entry === undefined) continue;
      this.#current = { kind, startedMs: this.#now() };
      entry.start();
      return;
    }
  }
}

/** A worker that takes turns. */
export interface TurnTaker {
  /** Ends the current turn and waits for the next. */
  take(): Promise<void>;
  /** Ends the current turn and asks for no more. */
  leave(): void;
}

/** Runs tasks one after the other, in the order in which they were added. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Adds a task; a task that fails does not stop later ones. A task that is aborted while it waits fails
   * at once and is never started.
   */
  add<T>(task: () => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    let waiting = true;
    const result = this.#last.then(() => {
      waiting = false;
      signal?.throwIfAborted();
      return task();
    });
    this.#last = result.catch(() => {});
    if (signal === undefined) return result;
    return new Promise<T>((resolve, reject) => {
      const abort = (): void => {
        if (waiting) reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      const stopListening = (): void => signal.removeEventListener("abort", abort);
      void result.then(resolve, reject).finally(stopListening);
    });
  }
}

/** A promise together with the functions that settle it. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  #resolve: ((value: T) => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(value: T): void {
    this.#resolve?.(value);
  }

  reject(reason: unknown): void {
    this.#reject?.(reason);
  }
}
