import { textOf } from "../../renderers/index.js";
import type { Conversation } from "./message-environment.js";

/** A number to find. */
export interface GuessNumberOptions {
  /** The number. */
  readonly number: number;
  /** The least that it may be. @default 1 */
  readonly from?: number | undefined;
  /** The most that it may be. @default 100 */
  readonly to?: number | undefined;
  /** Guesses. @default 10 */
  readonly maxGuesses?: number | undefined;
  /** Reads a guess. @default the first whole number in a text */
  readonly read?: ((text: string) => number | undefined) | undefined;
}

/**
 * Finding a number by guesses, with the answer too low or too high. The reward is 1 for a found number, else 0, and an
 * answer without a number -1 and the end.
 */
export function guessNumber(options: GuessNumberOptions): Conversation {
  const { number, from = 1, to = 100, maxGuesses = 10, read = firstNumber } = options;
  let guesses = 0;
  return {
    start: () => [
      { role: "user", content: `I think of a number from ${from} to ${to}. What is it?` },
    ],
    reply(message) {
      const guess = read(textOf(message));
      guesses++;
      const metrics = { found: Number(guess === number), guesses };
      if (guess === undefined) return { reward: -1, stopReason: "no_guess", metrics };
      if (guess === number) return { reward: 1, metrics };
      if (guesses >= maxGuesses) return { reward: 0, stopReason: "max_turns", metrics };
      const hint = guess < number ? "low" : "high";
      return { reward: 0, metrics: {}, messages: [{ role: "user", content: `Too ${hint}.` }] };
    },
  };
}

function firstNumber(text: string): number | undefined {
  const found = /-?\d+/.exec(text);
  return found ? Number(found[0]) : undefined;
}
