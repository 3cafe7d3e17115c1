import type { IncrementalDecoder, Tokenizer } from "@tinker-ts/hub";
import { StopCutter } from "../sections/stop-cutter.js";

/** Where the text of a choice ends. */
export interface EndRules {
  /** Tokens at which the model ends, and the requested stop tokens. */
  readonly modelEnds: readonly number[];
  readonly stopTokenIds: readonly number[];
  readonly stop: readonly string[];
  readonly includesStop: boolean;
  readonly ignoresEos: boolean;
  readonly minTokens: number;
}

/** Turns the tokens of one choice into text, cut exactly at the stop text or token. */
export class ChoiceText {
  readonly #decoder: IncrementalDecoder;
  readonly #cutter: StopCutter;
  readonly #rules: EndRules;
  readonly #ends: ReadonlySet<number>;
  #count = 0;
  #isOver = false;
  #stopReason: string | number | null = null;

  constructor(tokenizer: Tokenizer, rules: EndRules) {
    this.#decoder = tokenizer.incrementalDecoder();
    this.#cutter = new StopCutter(rules.stop, rules.includesStop);
    this.#rules = rules;
    this.#ends = new Set([...(rules.ignoresEos ? [] : rules.modelEnds), ...rules.stopTokenIds]);
  }

  /** The stop text or token that ended it; null if the model ended otherwise. */
  get stopReason(): string | number | null {
    return this.#stopReason;
  }

  /** Adds a token and returns the text that is final now. */
  push(token: number): string {
    this.#count += 1;
    if (this.#isOver) return "";
    const mayStop = this.#count >= this.#rules.minTokens;
    if (mayStop && this.#ends.has(token)) {
      // The end token is not text.
      const rest = this.finish();
      this.#isOver = true;
      if (!this.#rules.modelEnds.includes(token)) this.#stopReason ??= token;
      return rest;
    }
    return this.#cut(this.#decoder.push(token), mayStop);
  }

  /** Ends the text and returns the rest of it. */
  finish(): string {
    if (this.#isOver) return "";
    const text = this.#cut(this.#decoder.flush(), this.#count >= this.#rules.minTokens);
    return this.#isOver ? text : text + this.#cutter.flush();
  }

  #cut(decoded: string, mayStop: boolean): string {
    const { text, stop } = this.#cutter.push(decoded, mayStop);
    if (stop !== null) {
      this.#isOver = true;
      this.#stopReason = stop;
    }
    return text;
  }
}
