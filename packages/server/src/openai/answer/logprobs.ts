import type { TokenEvent } from "@tinker-ts/engine";
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
