import type { RendererTokenizer } from "@tinker-ts/cookbook/renderers";

/** The tokens of a stub besides single characters. */
export interface StubVocabulary {
  readonly special: readonly string[];
  readonly added: readonly string[];
  readonly bos: string | null;
  readonly eos: string | null;
}

const firstMark = 0x110000;

/** A tokenizer in which a listed mark is one token and every other code point is one token. */
export class StubTokenizer implements RendererTokenizer {
  readonly marks: readonly string[];
  readonly namedTokens: RendererTokenizer["namedTokens"];

  constructor({ special, added, bos, eos }: StubVocabulary) {
    this.marks = [...special, ...added];
    const named = (text: string | null) =>
      text === null ? null : { text, id: this.tokenToId(text)! };
    this.namedTokens = { bos: named(bos), eos: named(eos) };
  }

  encode(text: string, options: { readonly splitAddedTokens?: boolean } = {}): Int32Array {
    const ids: number[] = [];
    const longestFirst = this.marks.toSorted((a, b) => b.length - a.length);
    for (let at = 0; at < text.length;) {
      const mark = options.splitAddedTokens
        ? undefined
        : longestFirst.find((candidate) => text.startsWith(candidate, at));
      const unit = mark ?? String.fromCodePoint(text.codePointAt(at)!);
      ids.push(mark === undefined ? unit.codePointAt(0)! : this.tokenToId(mark)!);
      at += unit.length;
    }
    return Int32Array.from(ids);
  }

  decode(ids: Iterable<number>): string {
    return Array.from(ids, (id) => this.#textOf(id)).join("");
  }

  incrementalDecoder(): { push(id: number): string; flush(): string } {
    return { push: (id) => this.#textOf(id), flush: () => "" };
  }

  tokenToId(token: string): number | null {
    const index = this.marks.indexOf(token);
    return index < 0 ? null : firstMark + index;
  }

  /** The mark of an id; undefined for a character. */
  markOf(id: number): string | undefined {
    return this.marks[id - firstMark];
  }

  #textOf(id: number): string {
    return this.markOf(id) ?? String.fromCodePoint(id);
  }
}
