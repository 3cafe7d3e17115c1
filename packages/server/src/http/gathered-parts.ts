/** Memory is taken in pieces up to this size. */
const maxPieceBytes = 1 << 20;
const minPieceBytes = 1 << 14;

/**
 * The parts of a body, in few pieces: connections bring thousands of parts of a large one, and each would be handed
 * to a thread by itself. No more is taken for what is to come than has arrived.
 */
export class GatheredParts {
  readonly #full: Uint8Array[] = [];
  #piece = new Uint8Array(0);
  #used = 0;
  #sizeBytes = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds a copy: the memory of a part may be shared with what the connection brings next. */
  add(part: Uint8Array): void {
    this.#sizeBytes += part.length;
    let rest = part;
    while (rest.length > 0) {
      if (this.#used === this.#piece.length) this.#open(rest.length);
      const fitting = rest.subarray(0, this.#piece.length - this.#used);
      this.#piece.set(fitting, this.#used);
      this.#used += fitting.length;
      rest = rest.subarray(fitting.length);
    }
  }

  /** What has come. */
  take(): Uint8Array[] {
    return this.#used === 0 ? this.#full : [...this.#full, this.#piece.subarray(0, this.#used)];
  }

  #open(neededBytes: number): void {
    if (this.#used > 0) this.#full.push(this.#piece);
    const wantedBytes = Math.max(minPieceBytes, neededBytes, this.#sizeBytes - neededBytes);
    this.#piece = new Uint8Array(Math.min(maxPieceBytes, wantedBytes));
    this.#used = 0;
  }
}
