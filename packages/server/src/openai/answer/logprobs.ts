import type { SampleResult, TokenEvent } from "@tinker-ts/engine";
import type { Tokenizer } from "@tinker-ts/hub";

/** A generated token with its log-probabilities. */
export type GeneratedToken = Pick<TokenEvent, "token" | "logprob" | "top">;

/** JSON has no infinity. */
const leastLogprob = -9999;

/** Formats tokens for the two kinds of responses. */
export class LogprobWriter {
  readonly #tokenizer: Tokenizer;
  readonly #namesById: boolean;

  /** `namesById` names tokens by their ids instead of their texts. */
  constructor(tokenizer: Tokenizer, namesById: boolean) {
    this.#tokenizer = tokenizer;
    this.#namesById = namesById;
  }

  /** The name of a token. */
  nameOf(token: number): string {
    return this.#namesById ? `token_id:${token}` : this.#tokenizer.tokenText(token);
  }

  /** An entry of a chat completion. */
  chatEntry({ token, logprob, top = [] }: GeneratedToken): object {
    return {
      ...this.#named(token, logprob),
      top_logprobs: top.map((one) => this.#named(one.token, one.logprob)),
    };
  }

  /** The map of alternatives of a completion; the token itself is always in it. */
  alternatives({ token, logprob, top = [] }: GeneratedToken): Record<string, number> {
    const entries = [...top, { token, logprob }].map(
      (one) => [this.nameOf(one.token), bounded(one.logprob)] as const,
    );
    return Object.fromEntries(entries);
  }

  #named(token: number, logprob: number): object {
    const bytes = [...this.#tokenizer.tokenBytes(token)];
    return { token: this.nameOf(token), logprob: bounded(logprob), bytes };
  }
}

/** A log-probability that JSON can hold. */
export function bounded(logprob: number): number {
  return Math.max(leastLogprob, logprob);
}

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
