import { listen, stopListening, type AbortListener, type Cancellation } from "./cancellation.js";

/**
 * Bounds what is under way by its weight: a number of holders, or their bytes. Holders pass in the order in
 * which they asked.
 *
 * - A holder passes while something is left, even when it takes more than that, and passes in any case when
 *   it is alone: a request larger than the whole budget still runs.
 * - What is left can therefore be below zero by the weight of one holder at most.
 */
export class Semaphore {
  readonly #waiting = new WaitList();
  readonly #size: number;
  #left: number;

  constructor(size: number) {
    this.#size = size;
    this.#left = size;
  }

  get left(): number {
    return this.#left;
  }

  /** Passes without waiting when there is room. */
  tryAcquire(weight = 1): boolean {
    // What is released goes straight to the first in line, so room means an empty line.
    if (!this.#hasRoom) return false;
    this.#left -= weight;
    return true;
  }

  /** Waits to pass; the holder must `release` the same weight. */
  acquire(weight: number, signal?: Cancellation): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.tryAcquire(weight)) return Promise.resolve();
    return this.#waiting.wait(signal, () => {
      this.#left -= weight;
    });
  }

  release(weight = 1): void {
    this.#left += weight;
    while (this.#hasRoom && this.#waiting.wakeFirst());
  }

  get #hasRoom(): boolean {
    return this.#left > 0 || this.#left === this.#size;
  }
}

/**
 * First come, first served waiting; an abort takes a waiter out of the line and nothing else. A linked
 * list, because thousands may wait and any of them may leave.
 */
export class WaitList {
  readonly #line: Line = { first: undefined, last: undefined };

  /**
   * Waits to be woken; rejects with the reason of an abort. `onWake` runs inside the call that
   * wakes, before anybody else can look at the state.
   */
  wait(signal?: Cancellation, onWake?: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      listen(signal, new Waiter(this.#line, resolve, reject, signal, onWake));
    });
  }

  /** Wakes the first waiter; false when there is none. */
  wakeFirst(): boolean {
    const { first } = this.#line;
    first?.wake();
    return first !== undefined;
  }
}

interface Line {
  first: Waiter | undefined;
  last: Waiter | undefined;
}

/** A place in the line, from its creation until it is woken or aborted. */
class Waiter implements AbortListener {
  readonly #line: Line;
  readonly #resolve: () => void;
  readonly #reject: (reason: unknown) => void;
  readonly #signal: Cancellation | undefined;
  readonly #onWake: (() => void) | undefined;
  #previous: Waiter | undefined;
  #next: Waiter | undefined;

  constructor(
    line: Line,
    resolve: () => void,
    reject: (reason: unknown) => void,
    signal: Cancellation | undefined,
    onWake: (() => void) | undefined,
  ) {
    this.#line = line;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
    this.#onWake = onWake;
    this.#previous = line.last;
    if (line.last) line.last.#next = this;
    else line.first = this;
    line.last = this;
  }

  wake(): void {
    this.#leave();
    stopListening(this.#signal, this);
    this.#onWake?.();
    this.#resolve();
  }

  onAbort(reason: unknown): void {
    this.#leave();
    this.#reject(reason);
  }

  #leave(): void {
    const previous = this.#previous;
    const next = this.#next;
    if (previous) previous.#next = next;
    else this.#line.first = next;
    if (next) next.#previous = previous;
    else this.#line.last = previous;
  }
}
