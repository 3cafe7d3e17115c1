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

  /** Waits for the balance; whoever passes must `release` the same number of bytes. */
  async acquire(sizeBytes: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const take = (): void => {
      this.#availableBytes -= sizeBytes;
    };
    if (this.#availableBytes >= 0) take();
    else await this.#waiting.wait(signal, take);
  }

  release(sizeBytes: number): void {
    this.#availableBytes += sizeBytes;
    while (this.#availableBytes >= 0 && this.#waiting.wakeFirst());
  }
}
