import type { SampleResult } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import { bounded } from "./logprobs.js";

/** Log-probabilities of a prompt in vLLM's format: by id, the first position null. */
export function promptLogprobs(
  tokenizer: Tokenizer,
  prompt: Int32Array,
  result: SampleResult,
): readonly (Record<string, object> | null)[] {
  return Array.from(prompt, (token, position) => {
    if (position === 0) return null;
    const top = result.topkPromptLogprobs?.[position] ?? [];
    const own = { token, logprob: result.promptLogprobs?.[position] ?? NaN };
    const entries = [...top, ...(top.some((one) => one.token === token) ? [] : [own])];
    return Object.fromEntries(
      entries.map((one, index) => [
        String(one.token),
        {
          logprob: bounded(one.logprob),
          rank: index < top.length ? index + 1 : null,
          decoded_token: tokenizer.tokenText(one.token),
        },
      ]),
    );
  });
}
