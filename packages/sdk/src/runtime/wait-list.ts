import { onAbort } from "./on-abort.js";

interface Waiter {
  readonly wake: () => void;
}

/** First come, first served waiting; an abort takes a waiter out of the line and nothing else. */
export class WaitList {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /**
   * Waits to be woken; rejects with the signal's reason when aborted. `onWake` runs inside the call
   * that wakes, before anybody else can look at the state.
   */
  wait(signal?: AbortSignal, onWake?: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        wake: () => {
          stopListening();
          onWake?.();
          resolve();
        },
      };
      this.#waiters.add(waiter);
      const stopListening = onAbort(signal, (reason) => {
        this.#waiters.delete(waiter);
        reject(reason);
      });
    });
  }

  /** Wakes whoever waits longest; false when nobody does. */
  wakeFirst(): boolean {
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter);
      waiter.wake();
      return true;
    }
    return false;
  }
}
