import { tooMany } from "../errors/api-error.js";

/**
 * Bounds the memory that bodies under way take together, from their first byte to their answer.
 *
 * - What counts is what has arrived, not what was announced.
 * - One owner gets at most half of what the others leave, so that there is always room for one more.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #byOwner = new Map<string, number>();
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Begins a body that takes no room yet. */
  open(owner: string): BodyRoom {
    let ownBytes = 0;
    const release = (): void => {
      this.#note(owner, -ownBytes);
      ownBytes = 0;
    };
    return {
      take: (sizeBytes) => {
        const heldBytes = this.#byOwner.get(owner) ?? 0;
        const shareBytes = (this.#maxBytes - (this.#usedBytes - heldBytes)) / 2;
        if (heldBytes + sizeBytes > shareBytes) {
          throw tooMany("too many large requests of yours at once; try again in a moment", 1000);
        }
        this.#note(owner, sizeBytes);
        ownBytes += sizeBytes;
      },
      release,
    };
  }

  #note(owner: string, sizeBytes: number): void {
    const left = (this.#byOwner.get(owner) ?? 0) + sizeBytes;
    this.#usedBytes += sizeBytes;
    if (left > 0) this.#byOwner.set(owner, left);
    else this.#byOwner.delete(owner);
  }
}

/** The room of one body. */
export interface BodyRoom {
  /** Takes more, or refuses when there is none left. */
  take(sizeBytes: number): void;
  /** Gives everything back. */
  release(): void;
}
