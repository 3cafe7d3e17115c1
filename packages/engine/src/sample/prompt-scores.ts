import { at } from "../util/arrays.js";
import { RandomStream } from "../util/random.js";
import { checkLogprobs } from "./check-logprobs.js";
import type { DecodedRow } from "./decoder.js";
import { argmax, largest } from "./pick-token.js";
import type { TopTokens } from "./reported-logprobs.js";
import type { CheckedSampleOptions } from "./request.js";

/** The prompt results of a request. */
export interface PromptResult {
  /** Log-probability of each prompt token; NaN for the first and for those that were not requested. */
  readonly promptLogprobs?: Float32Array;
  /** Most likely tokens at each prompt position; null at the first and where none were requested. */
  readonly topkPromptLogprobs?: readonly (TopTokens | null)[];
  /** Log-probability of each of `promptTargets.tokens`, 0 for -1. */
  readonly targetPromptLogprobs?: Float32Array;
  /** Tokens drawn for every prompt position but the first. */
  readonly promptAlternatives?: PromptAlternatives;
}

/** Draws for prompt positions, those of one position behind those of the one before. */
export interface PromptAlternatives {
  readonly tokens: Int32Array;
  /** Of the model itself, at temperature 1. */
  readonly logprobs: Float32Array;
}

/** Separates the random streams of alternatives from those of samples. */
const alternativesKey = 0x616c74;

type Options = Pick<
  CheckedSampleOptions,
  | "prompt"
  | "promptLogprobs"
  | "topkPromptLogprobs"
  | "promptLogprobsLastN"
  | "promptTargets"
  | "promptAlternatives"
  | "temperature"
  | "seed"
>;

/** Collects the requested results for the positions of a prompt. */
export class PromptScores {
  readonly #options: Options;
  readonly #logprobs: Float32Array;
  readonly #topTokens: (TopTokens | null)[];
  readonly #targets: Float32Array;
  readonly #alternatives: PromptAlternatives;
  /** Positions from here on are scored. */
  readonly #firstLogprob: number;

  constructor(options: Options) {
    const { prompt, promptLogprobs, topkPromptLogprobs, promptLogprobsLastN: last } = options;
    this.#options = options;
    this.#logprobs = new Float32Array(prompt.length).fill(NaN);
    this.#topTokens = Array.from(prompt, () => null);
    this.#targets = new Float32Array(options.promptTargets?.tokens.length ?? 0);
    const draws = (prompt.length - 1) * options.promptAlternatives;
    this.#alternatives = { tokens: new Int32Array(draws), logprobs: new Float32Array(draws) };
    const isAsked = promptLogprobs || topkPromptLogprobs > 0;
    this.#firstLogprob = isAsked ? prompt.length - (last ?? prompt.length - 1) : prompt.length;
  }

  /** The first requested position; the prompt's length if there is none. */
  get first(): number {
    const { prompt } = this.#options;
    for (let position = 1; position < prompt.length; position++) {
      if (this.wants(position)) return position;
    }
    return prompt.length;
  }

  /** Whether results are requested for a position. */
  wants(position: number): boolean {
    const { prompt, promptAlternatives } = this.#options;
    if (position < 1 || position >= prompt.length) return false;
    if (position >= this.#firstLogprob || promptAlternatives > 0) return true;
    const [start, end] = this.#targetsOf(position);
    return this.#options.promptTargets?.tokens.subarray(start, end).some((id) => id >= 0) ?? false;
  }

  /** Records the model's prediction for a position, at temperature 1. */
  note(position: number, said: DecodedRow): void {
    checkLogprobs(said);
    const { prompt, topkPromptLogprobs, promptTargets } = this.#options;
    const { logits, logprobs } = said;
    if (position >= this.#firstLogprob) {
      this.#logprobs[position] = at(logprobs, at(prompt, position));
      if (topkPromptLogprobs > 0) {
        const tokens = largest(logits, topkPromptLogprobs);
        this.#topTokens[position] = tokens.map((token) => ({
          token,
          logprob: at(logprobs, token),
        }));
      }
    }
    const [start, end] = this.#targetsOf(position);
    for (let cell = start; cell < end; cell++) {
      const token = promptTargets?.tokens[cell] ?? -1;
      if (token >= 0) this.#targets[cell] = at(logprobs, token);
    }
    this.#draw(position, said);
  }

  /** All requested results. */
  result(): PromptResult {
    const { promptLogprobs, topkPromptLogprobs, promptTargets, promptAlternatives } = this.#options;
    return {
      ...(promptLogprobs ? { promptLogprobs: this.#logprobs } : {}),
      ...(topkPromptLogprobs > 0 ? { topkPromptLogprobs: this.#topTokens } : {}),
      ...(promptTargets ? { targetPromptLogprobs: this.#targets } : {}),
      ...(promptAlternatives > 0 ? { promptAlternatives: this.#alternatives } : {}),
    };
  }

  #targetsOf(position: number): readonly [start: number, end: number] {
    const { rowStarts } = this.#options.promptTargets ?? {};
    return rowStarts ? [at(rowStarts, position - 1), at(rowStarts, position)] : [0, 0];
  }

  /** A stream of its own for each position: other requested results do not influence the draws. */
  #draw(position: number, said: DecodedRow): void {
    const { promptAlternatives: count, temperature, seed } = this.#options;
    if (count === 0) return;
    const first = (position - 1) * count;
    const random = new RandomStream(seed, position, alternativesKey);
    const drawn = drawTokens(said, temperature, count, () => random.next());
    for (const [index, token] of drawn.entries()) {
      this.#alternatives.tokens[first + index] = token;
      this.#alternatives.logprobs[first + index] = at(said.logprobs, token);
    }
  }
}

/**
 * Draws tokens with replacement from softmax(logits / temperature); at temperature 0 the most likely one. Reported log-probabilities
 * are at temperature 1.
 */
function drawTokens(
  { logits, probabilities }: DecodedRow,
  temperature: number,
  count: number,
  random: () => number,
): number[] {
  const best = argmax(logits);
  if (temperature === 0) return Array.from({ length: count }, () => best);
  const top = at(logits, best);
  const sums = new Float64Array(logits.length);
  let sum = 0;
  for (let token = 0; token < logits.length; token++) {
    sum +=
      temperature === 1
        ? at(probabilities, token)
        : Math.exp((at(logits, token) - top) / temperature);
    sums[token] = sum;
  }
  return Array.from({ length: count }, () => firstAbove(sums, random() * sum));
}

/** The first index with a value above a bound in an ascending list; the list's last value is above it. */
function firstAbove(rising: Float64Array, value: number): number {
  let [low, high] = [0, rising.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(rising, middle) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
