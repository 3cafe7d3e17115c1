import { ByteSemaphore } from "../runtime/byte-semaphore.js";
import type { Cancellation } from "../runtime/cancellation.js";
import type { Clock } from "../runtime/clock.js";
import { Semaphore } from "../runtime/semaphore.js";
import { sleep } from "../runtime/sleep.js";

const maxInDispatch = 400;
const maxThrottled = 10;
/** Up to this many in dispatch do not stand in each other's way. */
const fewInDispatch = 16;
const throttledByteFactor = 20;
const recentMs = 10_000;
const checkEveryMs = 1_000;
const largeRequestBytes = 131_072;

/** What a request holds while it is in dispatch. */
export interface DispatchPermit {
  readonly isThrottled: boolean;
  readonly countedBytes: number;
}

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
  #inDispatch = 0;

  constructor(clock: Clock, sizeBytes: number) {
    this.#clock = clock;
    this.#bytes = new ByteSemaphore(sizeBytes);
  }

  /** Waits until a request of this size may be sent; `leave` gives the permit back. */
  enter(sizeBytes: number, signal: Cancellation): Promise<DispatchPermit> {
    return this.#slots.acquire(signal).then(() => this.#pass(sizeBytes, signal));
  }

  /** What is left to wait for inside; nobody waits here for long while the server has room. */
  #pass(sizeBytes: number, signal: Cancellation): DispatchPermit | Promise<DispatchPermit> {
    if (!this.#isBackoffRecent() && this.#bytes.tryAcquire(sizeBytes)) {
      this.#inDispatch++;
      return { isThrottled: false, countedBytes: sizeBytes };
    }
    return this.#passThrottled(sizeBytes, signal);
  }

  async #passThrottled(sizeBytes: number, signal: Cancellation): Promise<DispatchPermit> {
    let isThrottled = false;
    try {
      if (this.#isBackoffRecent()) {
        await this.#throttledSlots.acquire(signal);
        isThrottled = true;
      }
      const countedBytes = this.#isBackoffRecent() ? sizeBytes * throttledByteFactor : sizeBytes;
      await this.#bytes.acquire(countedBytes, signal);
      this.#inDispatch++;
      return { isThrottled, countedBytes };
    } catch (error) {
      this.#leaveSlots(isThrottled);
      throw error;
    }
  }

  leave({ isThrottled, countedBytes }: DispatchPermit): void {
    this.#inDispatch--;
    this.#bytes.release(countedBytes);
    this.#leaveSlots(isThrottled);
  }

  /** Whether so many are on their way that a place should not be kept longer than necessary. */
  get isBusy(): boolean {
    return this.#inDispatch > fewInDispatch;
  }

  /** Whether somebody has to hold back at the moment. */
  get isBackingOff(): boolean {
    return this.#backoffUntil !== undefined && this.#clock.now() < this.#backoffUntil;
  }

  /** The server has too much: nobody sends for a while, or for as long as it asks; says how long. */
  backOff(sizeBytes: number, askedMs?: number): number {
    const pauseMs = askedMs ?? (sizeBytes <= largeRequestBytes ? 1_000 : 5_000);
    const until = this.#clock.now() + pauseMs;
    this.#backoffUntil = Math.max(this.#backoffUntil ?? until, until);
    return pauseMs;
  }

  /** Waits until nobody has to hold back any more. */
  async waitForBackoff(signal: Cancellation): Promise<void> {
    while (this.isBackingOff) {
      const leftMs = (this.#backoffUntil ?? 0) - this.#clock.now();
      await sleep(this.#clock, Math.min(checkEveryMs, leftMs), signal);
    }
  }

  #leaveSlots(isThrottled: boolean): void {
    if (isThrottled) this.#throttledSlots.release();
    this.#slots.release();
  }

  #isBackoffRecent(): boolean {
    return this.#backoffUntil !== undefined && this.#clock.now() - this.#backoffUntil < recentMs;
  }
}
