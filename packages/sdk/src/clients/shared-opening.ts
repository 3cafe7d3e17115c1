import { abortable } from "../runtime/abortable.js";

/**
 * Something that is opened once, by whoever needs it first, and shared from then on. One who gives up
 * does not spoil it for the others; an opening that failed is tried again by the next, and so is one
 * whose result is not usable any more.
 */
export class SharedOpening<T> {
  readonly #open: () => Promise<T>;
  readonly #isUsable: (value: T) => boolean;
  #opening: Promise<T> | undefined;

  constructor(open: () => Promise<T>, isUsable: (value: T) => boolean = () => true) {
    this.#open = open;
    this.#isUsable = isUsable;
  }

  /** What is open or being opened; undefined when nothing is. */
  get current(): Promise<T> | undefined {
    return this.#opening;
  }

  async get(signal?: AbortSignal): Promise<T> {
    for (;;) {
      const opening = (this.#opening ??= this.#openOnce());
      const value = await abortable(opening, signal);
      if (this.#isUsable(value)) return value;
      if (this.#opening === opening) this.#opening = undefined;
    }
  }

  #openOnce(): Promise<T> {
    const opening = this.#open();
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }
}
