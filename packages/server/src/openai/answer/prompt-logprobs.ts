import type { SampleResult } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";
import { bounded } from "./logprobs.js";

/** Log-probabilities of a prompt as vLLM returns them: by id, the first position null. */
export function* promptLogprobs(
  tokenizer: Tokenizer,
  prompt: Int32Array,
  result: SampleResult,
): Generator<void, readonly (Record<string, object> | null)[], void> {
  const entries: (Record<string, object> | null)[] = [];
  for (const [position, token] of prompt.entries()) {
    yield;
    if (position === 0) {
      entries.push(null);
      continue;
    }
    const top = result.topkPromptLogprobs?.[position] ?? [];
    const own = { token, logprob: result.promptLogprobs?.[position] ?? NaN };
    const all = [...top, ...(top.some((one) => one.token === token) ? [] : [own])];
    const named = all.map((one, index) => {
      const rank = index < top.length ? index + 1 : null;
      const text = tokenizer.tokenText(one.token);
      return [String(one.token), { logprob: bounded(one.logprob), rank, decoded_token: text }];
    });
    entries.push(Object.fromEntries(named) as Record<string, object>);
  }
  return entries;
}
