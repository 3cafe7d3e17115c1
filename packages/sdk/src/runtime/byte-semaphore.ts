import type { Cancellation } from "./cancellation.js";
import { WaitList } from "./wait-list.js";

/**
 * Bounds the bytes that are under way, whatever the size of one request.
 *
 * - Whoever asks passes while the balance is not negative, even if that makes it negative: a request
 *   larger than the whole budget still runs, alone.
 * - The balance can therefore be below zero by the size of one request at most.
 */
export class ByteSemaphore {
  readonly #waiting = new WaitList();
  #availableBytes: number;

  constructor(sizeBytes: number) {
    this.#availableBytes = sizeBytes;
  }

  get availableBytes(): number {
    return this.#availableBytes;
  }

  /** Takes bytes without waiting when the balance allows it. */
  tryAcquire(sizeBytes: number): boolean {
    if (this.#availableBytes < 0) return false;
    this.#availableBytes -= sizeBytes;
    return true;
  }

  /** Waits for the balance; whoever passes must `release` the same number of bytes. */
  acquire(sizeBytes: number, signal?: Cancellation): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.tryAcquire(sizeBytes)) return Promise.resolve();
    return this.#waiting.wait(signal, () => {
      this.#availableBytes -= sizeBytes;
    });
  }

  release(sizeBytes: number): void {
    this.#availableBytes += sizeBytes;
    while (this.#availableBytes >= 0 && this.#waiting.wakeFirst());
  }
}
