import type { ParsedResponse, RendererTokenizer, Termination } from "../renderer.js";

/**
 * Reads an answer that ends with a text such as `\n\nUser:`. Base models may end with the end-of-text token
 * instead; both at once, or the text more than once, is not as it should be.
 */
export function readUntilText(
  tokenizer: RendererTokenizer,
  stop: string,
  tokens: readonly number[],
): ParsedResponse {
  const { eos } = tokenizer.namedTokens;
  const hasEos = eos !== null && tokens.at(-1) === eos.id;
  const pieces = tokenizer.decode(hasEos ? tokens.slice(0, -1) : tokens).split(stop);
  const content = pieces[0]!.replace(/^ /, "").replace(/\n\n$/, "");
  const terminations: Readonly<Record<string, Termination>> = {
    "1 true": "eos",
    "2 false": "stop_sequence",
  };
  return {
    message: { role: "assistant", content },
    termination: terminations[`${pieces.length} ${hasEos}`] ?? "malformed",
  };
}
