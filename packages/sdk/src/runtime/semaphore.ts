import type { Cancellation } from "./cancellation.js";
import { WaitList } from "./wait-list.js";

/** Lets a number of holders in at once, in the order in which they asked. */
export class Semaphore {
  readonly #waiting = new WaitList();
  #free: number;

  constructor(size: number) {
    this.#free = size;
  }

  /** Takes a slot without waiting when one is free and nobody is in line. */
  tryAcquire(): boolean {
    if (this.#free <= 0) return false;
    this.#free--;
    return true;
  }

  /** Waits for a slot; whoever gets one must `release` it. */
  acquire(signal?: Cancellation): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    // A released slot goes straight to the first in line, so a free slot means an empty line.
    return this.tryAcquire() ? Promise.resolve() : this.#waiting.wait(signal);
  }

  release(): void {
    if (!this.#waiting.wakeFirst()) this.#free++;
  }
}
