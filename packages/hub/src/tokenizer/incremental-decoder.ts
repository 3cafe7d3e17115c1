import type { PieceSink } from "./decoder-stages.js";
import type { TokenDecoder } from "./token-decoder.js";

/**
 * Turns a growing list of tokens into a growing text.
 *
 * - `push` returns the text that has become certain; it may be empty.
 * - A character whose bytes lie in several tokens appears with its last one, never as a half.
 * - The deltas and the flushed rest, joined, are what decoding all tokens at once gives.
 */
export class IncrementalDecoder {
  readonly #sink: PieceSink;
  readonly #tokenOf: (id: number) => string | null;
  #delta = "";

  /** `tokenOf` names the token of an id; null for one that leaves no text. */
  constructor(decoder: TokenDecoder, tokenOf: (id: number) => string | null) {
    this.#tokenOf = tokenOf;
    this.#sink = decoder.start((text) => {
      this.#delta += text;
    });
  }

  /** Adds a token, or several, and returns the text that they complete. */
  push(ids: number | Iterable<number>): string {
    for (const id of typeof ids === "number" ? [ids] : ids) {
      const token = this.#tokenOf(id);
      if (token !== null) this.#sink.push(token);
    }
    return this.#take();
  }

  /** Ends the text and returns what was held back; an unfinished character is replaced by U+FFFD. */
  flush(): string {
    this.#sink.end();
    return this.#take();
  }

  #take(): string {
    const delta = this.#delta;
    this.#delta = "";
    return delta;
  }
}
