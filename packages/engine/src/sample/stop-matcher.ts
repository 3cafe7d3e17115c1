/** The bytes of each token. */
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
    this.#keepBytes = this.#stops.reduce((most, stop) => Math.max(most, stop.length - 1), 0);
  }

  /** Adds a token; true when the text now contains a stop string. */
  push(token: number): boolean {
    const known = this.#tail.length;
    for (const byte of this.#text.bytesOf(token)) this.#tail.push(byte);
    const found = this.#stops.some((stop) => endsBehind(this.#tail, known, stop));
    this.#tail = this.#tail.slice(Math.max(0, this.#tail.length - this.#keepBytes));
    return found;
  }
}

/** Whether a text contains a part that ends after its first `known` bytes. */
function endsBehind(text: readonly number[], known: number, part: Uint8Array): boolean {
  for (let end = Math.max(known + 1, part.length); end <= text.length; end++) {
    let left = part.length;
    while (left > 0 && part[left - 1] === text[end - part.length + left - 1]) left--;
    if (left === 0) return true;
  }
  return false;
}
