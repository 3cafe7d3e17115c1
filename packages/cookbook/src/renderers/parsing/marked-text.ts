import type { RendererTokenizer } from "../renderer.js";

// Sampled tokens are parsed as a text in which every mark is replaced by a sign of its own, a
// non-character of Unicode. So a mark is never mistaken for text that spells it, and patterns can be written
// over the text as a whole.

const firstSign = 0xfdd0;
const signs = /[\ufdd0-\ufdef]/g;

/** The signs of a format's marks for one tokenizer. */
export class MarkSigns {
  readonly #marks: readonly string[];
  readonly #indexOfId = new Map<number, number>();
  readonly #signOf = new Map<string, string>();

  constructor(marks: readonly string[], idOf: (mark: string) => number | undefined) {
    this.#marks = marks;
    for (const [index, mark] of marks.entries()) {
      const id = idOf(mark);
      // A mark that is not a token of this tokenizer can only be spelled.
      this.#signOf.set(mark, id === undefined ? mark : String.fromCharCode(firstSign + index));
      if (id !== undefined) this.#indexOfId.set(id, index);
    }
  }

  /** The sign of a mark in a marked text. */
  sign(mark: string): string {
    return this.#signOf.get(mark) ?? mark;
  }

  /** A marked text with its marks spelled out. */
  spell(text: string): string {
    return text.replaceAll(signs, (sign) => this.#marks[sign.charCodeAt(0) - firstSign] ?? sign);
  }

  /** Decodes token by token. */
  decoder(tokenizer: RendererTokenizer): { push(id: number): string; flush(): string } {
    const decoder = tokenizer.incrementalDecoder();
    return {
      push: (id) => {
        const text = decoder.push(id);
        const index = this.#indexOfId.get(id);
        if (index === undefined) return clean(text);
        // A held-back partial character before the mark is emitted with it.
        const before = text.slice(0, text.length - this.#marks[index]!.length);
        return clean(before) + String.fromCharCode(firstSign + index);
      },
      flush: () => clean(decoder.flush()),
    };
  }

  /** The marked text of tokens. */
  decode(tokenizer: RendererTokenizer, ids: readonly number[]): string {
    const decoder = this.decoder(tokenizer);
    let text = "";
    for (const id of ids) text += decoder.push(id);
    return text + decoder.flush();
  }
}

/** Texts do not need non-characters; one that a model wrote must not be mistaken for a mark. */
function clean(text: string): string {
  return text.replaceAll(signs, "\ufffd");
}

/** A pattern that matches a sign or a text as it is. */
export function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
