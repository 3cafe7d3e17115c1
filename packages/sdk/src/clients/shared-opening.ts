import { abortable } from "../runtime/abortable.js";

/**
 * Something that is opened once, by whoever needs it first, and shared from then on. One who gives up
 * does not spoil it for the others; an opening that failed is tried again by the next.
 */
export class SharedOpening<T> {
  readonly #open: () => Promise<T>;
  #opening: Promise<T> | undefined;

  constructor(open: () => Promise<T>) {
    this.#open = open;
  }

  /** What is open or being opened; undefined when nothing is. */
  get current(): Promise<T> | undefined {
    return this.#opening;
  }

  get(signal?: AbortSignal): Promise<T> {
    this.#opening ??= this.#openOnce();
    return abortable(this.#opening, signal);
  }

  /** Lets the next one open anew, unless somebody already has. */
  forget(opening: Promise<T> | undefined): void {
    if (this.#opening === opening) this.#opening = undefined;
  }

  #openOnce(): Promise<T> {
    const opening = this.#open();
    opening.catch(() => this.forget(opening));
    return opening;
  }
}
