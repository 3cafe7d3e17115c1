import { tooMany } from "../errors/api-error.js";

/** Bounds the memory that bodies under way take together, from their first byte to their answer. */
export class BodyBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Begins a body that takes no room yet. */
  open(): BodyRoom {
    let ownBytes = 0;
    return {
      take: (sizeBytes) => {
        if (this.#usedBytes + sizeBytes > this.#maxBytes) {
          throw tooMany("too many large requests at once; try again in a moment", 1000);
        }
        this.#usedBytes += sizeBytes;
        ownBytes += sizeBytes;
      },
      release: () => {
        this.#usedBytes -= ownBytes;
        ownBytes = 0;
      },
    };
  }
}

/** The room of one body. */
export interface BodyRoom {
  /** Takes more, or refuses when there is none left. */
  take(sizeBytes: number): void;
  /** Gives everything back. */
  release(): void;
}
