import type { Clock } from "../time/clock.js";

/**
 * Long polls. Any number of them may wait for the same request; each has its own time limit and its
 * own signal, and one that gives up takes nobody else along.
 */
export class Waiters<T> {
  readonly #clock: Clock;
  readonly #byRequest = new Map<string, Set<(outcome: T | undefined) => void>>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many polls are waiting. */
  get count(): number {
    return this.#count;
  }

  /** Resolves with the outcome, or with undefined when it did not come in time. */
  wait(requestId: string, timeoutMs: number, signal: AbortSignal): Promise<T | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const waiters = this.#byRequest.get(requestId) ?? new Set();
      this.#byRequest.set(requestId, waiters);
      const settle = (outcome: T | undefined): void => {
        cancelTimer();
        signal.removeEventListener("abort", giveUp);
        waiters.delete(settle);
        if (waiters.size === 0 && this.#byRequest.get(requestId) === waiters) {
          this.#byRequest.delete(requestId);
        }
        this.#count--;
        resolve(outcome);
      };
      const giveUp = (): void => settle(undefined);
      const cancelTimer = this.#clock.after(timeoutMs, giveUp);
      signal.addEventListener("abort", giveUp, { once: true });
      waiters.add(settle);
      this.#count++;
    });
  }

  /** Tells everyone who waits for a request how it ended. */
  settle(requestId: string, outcome: T): void {
    for (const settle of this.#byRequest.get(requestId) ?? []) settle(outcome);
  }

  /** Lets every poll answer "not yet" at once, so that the server can stop. */
  releaseAll(): void {
    for (const waiters of this.#byRequest.values()) {
      for (const settle of waiters) settle(undefined);
    }
  }
}
