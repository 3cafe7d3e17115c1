import { type Cancellation, sleep } from "../runtime/cancellation.js";
import type { Clock } from "../runtime/clock.js";
import { Semaphore } from "../runtime/semaphore.js";

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
 * - The server answers 429 when it has too much; then nothing is sent for a second (five after a large
 *   request), and from then until ten seconds after that only ten at a time, each counted as twenty
 *   times its size.
 */
export class SampleGate {
  readonly #clock: Clock;
  readonly #slots = new Semaphore(maxInDispatch);
  readonly #throttledSlots = new Semaphore(maxThrottled);
  readonly #bytes: Semaphore;
  #backoffUntil: number | undefined;
  #inDispatch = 0;

  constructor(clock: Clock, sizeBytes: number) {
    this.#clock = clock;
    this.#bytes = new Semaphore(sizeBytes);
  }

  /** Waits until a request of this size may be sent; `leave` gives the permit back. */
  enter(sizeBytes: number, signal: Cancellation): Promise<DispatchPermit> {
    return this.#slots.acquire(1, signal).then(() => this.#pass(sizeBytes, signal));
  }

  /** The waits behind the slot, which are short while the server has room. */
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
        await this.#throttledSlots.acquire(1, signal);
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

  /** True while many requests are in dispatch, so that none should hold its slot for long. */
  get isBusy(): boolean {
    return this.#inDispatch > fewInDispatch;
  }

  /** True while requests must be held back. */
  get isBackingOff(): boolean {
    return this.#backoffUntil !== undefined && this.#clock.now() < this.#backoffUntil;
  }

  /** Holds requests back for a while, or for as long as the server asked; returns how long. */
  backOff(sizeBytes: number, askedMs?: number): number {
    const pauseMs = askedMs ?? (sizeBytes <= largeRequestBytes ? 1_000 : 5_000);
    const until = this.#clock.now() + pauseMs;
    this.#backoffUntil = Math.max(this.#backoffUntil ?? until, until);
    return pauseMs;
  }

  /** Waits until requests need not be held back any more. */
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
