/** The bytes that each token stands for. */
export interface TokenText {
  bytesOf(token: number): Uint8Array;
}

/**
 * Notices when generated text contains one of some strings, also where it spans several tokens. Bytes are
 * compared, so that a character split over two tokens needs no care.
 */
export class StopMatcher {
  readonly #stops: readonly Uint8Array[];
  readonly #text: TokenText;
  readonly #keepBytes: number;
  #tail: number[] = [];

  constructor(strings: readonly string[], text: TokenText) {
    const encoder = new TextEncoder();
    this.#stops = strings.map((string) => encoder.encode(string));
    this.#text = text;
    this.#keepBytes = Math.max(0, ...this.#stops.map((stop) => stop.length - 1));
  }

  /** Adds a token; true when the text now contains a stop string. */
  push(token: number): boolean {
    this.#tail.push(...this.#text.bytesOf(token));
    const found = this.#stops.some((stop) => contains(this.#tail, stop));
    this.#tail = this.#tail.slice(Math.max(0, this.#tail.length - this.#keepBytes));
    return found;
  }
}

function contains(text: readonly number[], part: Uint8Array): boolean {
  for (let start = 0; start + part.length <= text.length; start++) {
    if (part.every((byte, index) => text[start + index] === byte)) return true;
  }
  return false;
}
