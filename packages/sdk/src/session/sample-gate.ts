import { ByteSemaphore } from "../runtime/byte-semaphore.js";
import type { Clock } from "../runtime/clock.js";
import { Semaphore } from "../runtime/semaphore.js";

const maxInDispatch = 400;
const maxThrottled = 10;
const throttledByteFactor = 20;
const recentMs = 10_000;
const checkEveryMs = 1_000;
const largeRequestBytes = 131_072;

/** Undoes what `SampleGate.enter` took. */
export type LeaveGate = () => void;

/**
 * Limits the samples that are on their way to the server, for all sampling clients of a session.
 *
 * - 400 may be in dispatch at once, within a budget of bytes.
 * - The server says 429 when it has too much; then nobody sends for a second (five after a large
 *   request), and from then until ten seconds after that only ten at a time, each counted as twenty
 *   times its size.
 */
export class SampleGate {
  readonly #clock: Clock;
  readonly #slots = new Semaphore(maxInDispatch);
  readonly #throttledSlots = new Semaphore(maxThrottled);
  readonly #bytes: ByteSemaphore;
  #backoffUntil: number | undefined;

  constructor(clock: Clock, sizeBytes: number) {
    this.#clock = clock;
    this.#bytes = new ByteSemaphore(sizeBytes);
  }

  /** Waits until a request of this size may be sent. */
  async enter(sizeBytes: number, signal: AbortSignal): Promise<LeaveGate> {
    const taken: LeaveGate[] = [];
    const leave = (): void => {
      for (const release of taken.splice(0).toReversed()) release();
    };
    try {
      await this.#slots.acquire(signal);
      taken.push(() => this.#slots.release());
      if (this.#isBackoffRecent()) {
        await this.#throttledSlots.acquire(signal);
        taken.push(() => this.#throttledSlots.release());
      }
      const countedBytes = this.#isBackoffRecent() ? sizeBytes * throttledByteFactor : sizeBytes;
      await this.#bytes.acquire(countedBytes, signal);
      taken.push(() => this.#bytes.release(countedBytes));
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** The server has too much: nobody sends for a while. */
  backOff(sizeBytes: number): void {
    const pauseMs = sizeBytes <= largeRequestBytes ? 1_000 : 5_000;
    this.#backoffUntil = this.#clock.now() + pauseMs;
  }

  /** Waits until nobody has to hold back any more. */
  async waitForBackoff(signal: AbortSignal): Promise<void> {
    while (this.#backoffUntil !== undefined && this.#clock.now() < this.#backoffUntil) {
      await this.#clock.sleep(checkEveryMs, signal);
    }
  }

  #isBackoffRecent(): boolean {
    return this.#backoffUntil !== undefined && this.#clock.now() - this.#backoffUntil < recentMs;
  }
}
