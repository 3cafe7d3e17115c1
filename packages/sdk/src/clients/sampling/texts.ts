import type { Tokenizer } from "@tinker-ts/hub";
import type { SampleResponse } from "../../types/sampling.js";

/** The tokenizer of a model once it has been loaded, shared by the clients of that model. */
export interface KnownTokenizer {
  current?: Tokenizer;
}

/**
 * Gives sequences their `text`. Most who train never read it, so that it is decoded when it is read, and
 * what walks over all fields (JSON, copies, messages to threads) does not.
 */
export function withTexts(
  response: SampleResponse,
  given: Tokenizer | null | undefined,
  known?: KnownTokenizer,
): SampleResponse {
  const tokenizer = given === undefined ? known?.current : given;
  if (!tokenizer) return response;
  for (const sequence of response.sequences) {
    let text: string | undefined;
    Object.defineProperty(sequence, "text", {
      get: () => (text ??= tokenizer.decode(sequence.tokens, { skipSpecialTokens: true })),
    });
  }
  return response;
}
