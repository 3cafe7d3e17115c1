import { tooMany } from "../errors/api-error.js";

/** Bounds the memory that bodies under way take together. */
export class BodyBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes room for a body and returns the way to give it back; one body alone always fits. */
  acquire(sizeBytes: number): () => void {
    if (this.#usedBytes > 0 && this.#usedBytes + sizeBytes > this.#maxBytes) {
      throw tooMany("too many large requests at once; try again in a moment", 1000);
    }
    this.#usedBytes += sizeBytes;
    let isHeld = true;
    return () => {
      if (isHeld) this.#usedBytes -= sizeBytes;
      isHeld = false;
    };
  }
}
