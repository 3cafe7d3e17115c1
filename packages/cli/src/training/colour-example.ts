import type { Datum, Tokenizer } from "tinker-ts";
import type { Style } from "../terminal/style.js";

/** A datum as text: what is learned in green, what is only read dim, special tokens as they are written. */
export function colourExample(datum: Datum, tokenizer: Tokenizer, style: Style): string {
  const input = datum.modelInput.toInts();
  const targets = Array.from(datum.lossFnInputs["target_tokens"]!.data, Number);
  const weights = Array.from(datum.lossFnInputs["weights"]!.data, Number);
  const tokens = [input[0]!, ...targets];
  let text = "";
  for (let start = 0; start < tokens.length;) {
    const isLearned = start > 0 && weights[start - 1]! > 0;
    let end = start + 1;
    while (end < tokens.length && weights[end - 1]! > 0 === isLearned) end++;
    const piece = tokenizer.decode(tokens.slice(start, end));
    text += paintLines(piece, isLearned ? style.green : style.dim);
    start = end;
  }
  return text;
}

/** Colours end with the line, so that a pager or a cut line does not carry them on. */
function paintLines(text: string, paint: (line: string) => string): string {
  return text
    .split("\n")
    .map((line) => (line === "" ? "" : paint(line)))
    .join("\n");
}
