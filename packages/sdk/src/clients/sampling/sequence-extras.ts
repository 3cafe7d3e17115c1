import type { Tokenizer } from "@tinker-ts/hub";
import { liftTopLogprobs } from "../../types/sampling-extensions.js";
import type { SampleResponse } from "../../types/sampling.js";

/** The tokenizer of a model once it has been loaded, shared by the clients of that model. */
export interface KnownTokenizer {
  current?: Tokenizer;
}

/**
 * Gives sequences their `text` and `topLogprobs`. Most who train never read the text, so that it is decoded
 * when it is read, and what walks over all fields (JSON, copies, messages to threads) does not.
 */
export function withExtras(
  response: SampleResponse,
  given: Tokenizer | null | undefined,
  known?: KnownTokenizer,
): SampleResponse {
  const tokenizer = given === undefined ? known?.current : given;
  for (const sequence of response.sequences) {
    if (sequence.unknownFields) liftTopLogprobs(sequence);
    if (!tokenizer) continue;
    let text: string | undefined;
    Object.defineProperty(sequence, "text", {
      get: () => (text ??= tokenizer.decode(sequence.tokens, { skipSpecialTokens: true })),
    });
  }
  return response;
}
