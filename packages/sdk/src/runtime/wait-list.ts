import { listen, stopListening, type AbortListener, type Cancellation } from "./cancellation.js";

/**
 * First come, first served waiting; an abort takes a waiter out of the line and nothing else. A linked
 * list, because thousands may wait and any of them may leave.
 */
export class WaitList {
  readonly #line: Line = { first: undefined, last: undefined };

  /**
   * Waits to be woken; rejects with the reason when it is given up. `onWake` runs inside the call that
   * wakes, before anybody else can look at the state.
   */
  wait(signal?: Cancellation, onWake?: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      listen(signal, new Waiter(this.#line, resolve, reject, signal, onWake));
    });
  }

  /** Wakes whoever waits longest; false when nobody does. */
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

/** One who waits: stands in line from the beginning, and leaves it woken or given up. */
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
