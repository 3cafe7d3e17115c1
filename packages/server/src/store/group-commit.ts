import type { SqlDatabase } from "./sql.js";

interface Action {
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Longest time one transaction may hold the event loop before it commits what it has. */
const budgetMs = 8;

/** Most writes in one transaction: all their answers are made in the turn that follows its commit. */
const maxActions = 64;

/**
 * Writes of one turn of the event loop share one transaction, so that thousands of acknowledgements
 * cost a handful of commits.
 *
 * - A write's promise resolves only after its commit: what was acknowledged is on disk.
 * - Actions run one after the other in the order of the calls; each sees what those before it wrote.
 * - An action that throws is undone alone; the others of its transaction stand.
 * - A commit that fails rejects every action of its transaction.
 */
export class GroupCommit {
  readonly #database: SqlDatabase;
  #queue: Action[] = [];
  #isScheduled = false;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Runs `action` inside the next transaction, which comes at the end of this turn. */
  write<T>(action: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (value: unknown): void => resolve(value as T);
      this.#queue.push({ run: action, resolve: settle, reject });
      this.#schedule();
    });
  }

  /** Resolves when everything written so far is committed. */
  async flush(): Promise<void> {
    await this.write(() => {});
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#commit();
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #commit(): void {
    const deadline = performance.now() + budgetMs;
    const settled: (() => void)[] = [];
    const taken: Action[] = [];
    try {
      this.#do("BEGIN IMMEDIATE");
      const isAlone = this.#queue.length === 1;
      while (taken.length < Math.min(this.#queue.length, maxActions)) {
        if (taken.length > 0 && performance.now() > deadline) break;
        const action = this.#queue[taken.length]!;
        taken.push(action);
        settled.push(isAlone ? this.#runAlone(action) : this.#run(action));
        if (isAlone) break;
      }
      this.#do("COMMIT");
    } catch (error) {
      this.#rollback();
      for (const action of taken) action.reject(error);
      settled.length = 0;
      if (taken.length === 0) this.#queue.shift()?.reject(error);
    }
    this.#queue.splice(0, taken.length);
    for (const settle of settled) settle();
  }

  /** Runs one action under a savepoint; tells how to settle it once the transaction has committed. */
  #run(action: Action): () => void {
    this.#do("SAVEPOINT action");
    try {
      const value = action.run();
      this.#do("RELEASE action");
      return () => action.resolve(value);
    } catch (error) {
      this.#do("ROLLBACK TO action");
      this.#do("RELEASE action");
      return () => action.reject(error);
    }
  }

  /** Runs the only action of a transaction, which is undone when that throws. */
  #runAlone(action: Action): () => void {
    const value = action.run();
    return () => action.resolve(value);
  }

  /** A statement of the transaction itself; parsed once, because every write needs two of them. */
  #do(text: string): void {
    this.#database.sql(text).run();
  }

  #rollback(): void {
    try {
      this.#do("ROLLBACK");
    } catch {
      // The transaction was already undone by the failure itself.
    }
  }
}
