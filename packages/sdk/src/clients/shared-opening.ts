import type { Cancellation } from "../runtime/cancellation.js";
import { SharedWork } from "../runtime/shared-work.js";

/**
 * Something that the first caller opens and later callers share. A caller that cancels
 * does not spoil it for the others; when all have, the opening ends. One that failed or ended is begun
 * anew by the next.
 */
export class SharedOpening<T> {
  readonly #open: (signal: AbortSignal) => Promise<T>;
  #opening: SharedWork<T> | undefined;

  constructor(open: (signal: AbortSignal) => Promise<T>) {
    this.#open = open;
  }

  /** What is open or being opened; undefined when nothing is. */
  get current(): SharedWork<T> | undefined {
    return this.#opening;
  }

  get(signal?: Cancellation): Promise<T> {
    if (!this.#opening || this.#opening.isGivenUp) this.#opening = this.#begin();
    return this.#opening.wait(signal);
  }

  /** Has the next caller open it again, unless another caller already has. */
  forget(opening: SharedWork<T> | undefined): void {
    if (this.#opening === opening) this.#opening = undefined;
  }

  #begin(): SharedWork<T> {
    const opening: SharedWork<T> = new SharedWork((signal) =>
      this.#open(signal).catch((error: unknown) => {
        this.forget(opening);
        throw error;
      }),
    );
    return opening;
  }
}
