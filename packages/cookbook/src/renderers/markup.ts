import type { RendererTokenizer } from "./renderer.js";
import { RendererError } from "./renderer-error.js";

// Everything that is rendered is a list of atoms: marks, which are tokens of their own, and text. Marks come
// from the fixed parts of templates only; filled-in values are always text. So no
// message can forge the end of a turn.

/** A token written by its id. */
export interface Mark {
  readonly mark: string;
}

/** Marks and texts in order. */
export type Markup = readonly (string | Mark)[];

/** Fills texts and markup into a template; its fixed parts may contain marks. */
export type MarkupTemplate = (
  fixed: TemplateStringsArray,
  ...filled: readonly (string | Markup)[]
) => Markup;

/** A template function that knows a family's marks. */
export function markupOf(marks: readonly string[]): MarkupTemplate {
  const known = new WeakMap<TemplateStringsArray, Markup[]>();
  return (fixed, ...filled) => {
    let parts = known.get(fixed);
    if (!parts) known.set(fixed, (parts = fixed.map((text) => findMarks(text, marks))));
    return parts.flatMap((part, index) => {
      const value = filled[index];
      if (value === undefined || value === "") return part;
      return typeof value === "string" ? [...part, value] : [...part, ...value];
    });
  };
}

/** Splits a text of the renderer itself at its marks; the longest of several matches wins. */
export function findMarks(text: string, marks: readonly string[]): Markup {
  const found: (string | Mark)[] = [];
  let rest = text;
  while (rest !== "") {
    const places = marks
      .map((mark) => ({ mark, at: rest.indexOf(mark) }))
      .filter(({ at }) => at >= 0)
      .toSorted((a, b) => a.at - b.at || b.mark.length - a.mark.length);
    const first = places[0];
    if (!first) return [...found, rest];
    if (first.at > 0) found.push(rest.slice(0, first.at));
    found.push({ mark: first.mark });
    rest = rest.slice(first.at + first.mark.length);
  }
  return found;
}

/** The text of markup, marks spelled out. */
export function markupText(markup: Markup): string {
  return markup.map((atom) => (typeof atom === "string" ? atom : atom.mark)).join("");
}

/** Short texts, such as the names of roles, are encoded again and again. */
const longestKept = 24;
const mostKept = 4096;

/** Encodes markup: marks by their ids, and the text between them without special tokens. */
export class MarkupEncoder {
  readonly #tokenizer: RendererTokenizer;
  readonly #ids = new Map<string, number>();
  readonly #kept = new Map<string, Int32Array>();

  /** Fails when the tokenizer lacks a mark of `required`; other missing marks become text. */
  constructor(
    renderer: string,
    tokenizer: RendererTokenizer,
    marks: readonly string[],
    required: readonly string[],
  ) {
    this.#tokenizer = tokenizer;
    for (const mark of marks) {
      const id = tokenizer.tokenToId(mark);
      if (id !== null) this.#ids.set(mark, id);
    }
    const missing = required.filter((mark) => !this.#ids.has(mark));
    if (missing.length === 0) return;
    throw new RendererError(
      `The tokenizer has no token ${missing.join(", ")}, so the renderer "${renderer}" is not for its model. ` +
        `Use the recommended renderer, or "chat_template" for the model's own.`,
    );
  }

  /** The id of a mark, if the tokenizer has it. */
  idOf(mark: string): number | undefined {
    return this.#ids.get(mark);
  }

  /** The tokens of markup. */
  encode(markup: Markup): Int32Array {
    const runs: (number | Int32Array)[] = [];
    let text = "";
    let length = 0;
    const flush = () => {
      if (text === "") return;
      const run = this.#encodeText(text);
      runs.push(run);
      length += run.length;
      text = "";
    };
    for (const atom of markup) {
      const id = typeof atom === "string" ? undefined : this.#ids.get(atom.mark);
      if (id === undefined) {
        text += typeof atom === "string" ? atom : atom.mark;
        continue;
      }
      flush();
      runs.push(id);
      length++;
    }
    flush();
    if (runs.length === 1 && typeof runs[0] !== "number") return runs[0]!;
    return join(runs, length);
  }

  #encodeText(text: string): Int32Array {
    const kept = this.#kept.get(text);
    if (kept) return kept;
    const ids = this.#tokenizer.encode(text, { addSpecialTokens: false, splitAddedTokens: true });
    if (text.length <= longestKept && this.#kept.size < mostKept) this.#kept.set(text, ids);
    return ids;
  }
}

function join(runs: readonly (number | Int32Array)[], length: number): Int32Array {
  const ids = new Int32Array(length);
  let offset = 0;
  for (const run of runs) {
    if (typeof run === "number") ids[offset++] = run;
    else {
      ids.set(run, offset);
      offset += run.length;
    }
  }
  return ids;
}
