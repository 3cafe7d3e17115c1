import type { Renderer, SupervisedExample } from "@tinker-ts/cookbook/renderers";
import type { ModelInput } from "tinker-ts";
import { toPieces } from "./renderer-cases.js";
import type { StubTokenizer } from "./stub-tokenizer.js";

/** Tokens as text in which each mark stands between « and », so that it differs from text that spells it. */
export function marked(renderer: Renderer, ids: Iterable<number>): string {
  return toPieces(renderer.tokenizer as StubTokenizer, ids)
    .map((piece) => (typeof piece === "string" ? piece : `«${piece.special}»`))
    .join("");
}

/** A prompt as marked text. */
export function markedInput(renderer: Renderer, input: ModelInput): string {
  return marked(renderer, input.toInts());
}

/** The trained parts of an example as marked text. */
export function trainedSpans(renderer: Renderer, { input, weights }: SupervisedExample): string[] {
  const spans: number[][] = [];
  let before = 0;
  for (const [index, id] of input.toInts().entries()) {
    const weight = weights[index]!;
    if (weight === 1 && before === 0) spans.push([]);
    if (weight === 1) spans.at(-1)!.push(id);
    before = weight;
  }
  return spans.map((span) => marked(renderer, span));
}
