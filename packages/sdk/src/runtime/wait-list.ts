import { onAbort, type Cancellation } from "./cancellation.js";

interface Waiter {
  readonly wake: () => void;
  previous: Waiter | undefined;
  next: Waiter | undefined;
}

/**
 * First come, first served waiting; an abort takes a waiter out of the line and nothing else. A linked
 * list, because thousands may wait and any of them may leave.
 */
export class WaitList {
  #first: Waiter | undefined;
  #last: Waiter | undefined;

  /**
   * Waits to be woken; rejects with the reason when it is given up. `onWake` runs inside the call that
   * wakes, before anybody else can look at the state.
   */
  wait(signal?: Cancellation, onWake?: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = (): void => {
        stopListening();
        onWake?.();
        resolve();
      };
      const waiter: Waiter = { wake, previous: this.#last, next: undefined };
      if (this.#last) this.#last.next = waiter;
      else this.#first = waiter;
      this.#last = waiter;
      const stopListening = onAbort(signal, (reason) => {
        this.#remove(waiter);
        reject(reason);
      });
    });
  }

  /** Wakes whoever waits longest; false when nobody does. */
  wakeFirst(): boolean {
    const waiter = this.#first;
    if (!waiter) return false;
    this.#remove(waiter);
    waiter.wake();
    return true;
  }

  #remove({ previous, next }: Waiter): void {
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
  }
}
