import type { AdapterSet, FrozenAdapter } from "./adapter-set.js";
import { decodedRow, type DecodedRow, type Decoder, type DecoderOutput } from "./decoder.js";
import type { KvMemory } from "./kv-memory.js";
import { KvRows, type KvShape } from "./kv-rows.js";
import { promptBlock, type PrefixCache, type PrefixSource } from "./prefix-cache.js";
import type { CheckedSampleOptions } from "./request.js";
import { at } from "../util/arrays.js";
import { RandomStream } from "../util/random.js";
import { checkLogprobs, type TopTokens } from "./sequence.js";
import { argmax, largest } from "./pick-token.js";

/** Blocks after which states are kept also within a prompt. */
const blocksBetweenStates = 16;

/**
 * Reads a prompt block by block.
 *
 * Blocks are aligned to the prompt's start and computed alone, so that their keys and values do not
 * depend on the request or on other work.
 */
export class PromptPass {
  readonly #options: CheckedSampleOptions;
  readonly #adapter: FrozenAdapter;
  readonly #adapters: AdapterSet;
  readonly #decoder: Decoder;
  readonly #prefixes: PrefixCache;
  readonly #shape: KvShape;
  readonly scores: PromptScores;
  #row: KvRows;
  #next: DecodedRow | undefined;
  #hitTokens = 0;

  constructor(
    options: CheckedSampleOptions,
    adapter: FrozenAdapter,
    adapters: AdapterSet,
    decoder: Decoder,
    prefixes: PrefixCache,
    shape: KvShape,
    memory?: KvMemory,
  ) {
    this.#options = options;
    this.#adapter = adapter;
    this.#adapters = adapters;
    this.#decoder = decoder;
    this.#prefixes = prefixes;
    this.#shape = shape;
    this.#row = new KvRows(shape, options.prompt.length, 1, memory);
    this.#row.clear(0);
    this.scores = new PromptScores(options);
    this.#reuse();
  }

  /** Prompt tokens with cached keys and values. */
  get hitTokens(): number {
    return this.#hitTokens;
  }

  /** Keys and values of the prompt. */
  get row(): KvRows {
    return this.#row;
  }

  /** The row that the first token of every sample is drawn from, once the prompt has been read. */
  get next(): DecodedRow | undefined {
    return this.#next;
  }

  /** Returns the memory; the pass must not be used any more. */
  release(): void {
    this.#row.release();
  }

  /** Reads one more block. */
  async step(): Promise<void> {
    const { prompt, temperature } = this.#options;
    const start = this.#row.length(0);
    const end = Math.min(prompt.length, start + promptBlock);
    const count = end - start;
    const rows = Array.from({ length: count }, (_, row) => row);
    const scored = rows.filter((row) => this.scores.wants(start + row + 1));
    const isLast = end === prompt.length;
    const use = (output: DecoderOutput, first: number): void => {
      for (const [index] of output.logprobSum.entries()) {
        const said = decodedRow(output, index);
        const row = scored[first + index];
        if (row === undefined) this.#next = copyOf(said);
        else this.scores.note(start + row + 1, said);
      }
    };
    const input = {
      tokens: prompt.subarray(start, end),
      newTokens: count,
      cache: this.#row,
      adapters: this.#adapters,
      adapterIds: [this.#adapter.id],
      head: [
        ...scored.map((row) => ({ row, temperature: 1 })),
        ...(isLast ? [{ row: count - 1, temperature }] : []),
      ],
      wholeTokens: prompt.length,
    };
    await this.#decoder.run(input, use);
    if (count === promptBlock) this.#remember(start / promptBlock);
  }

  get #source(): PrefixSource {
    return { adapter: this.#adapter.id, scope: this.#options.cacheScope };
  }

  /** Takes known blocks over, but leaves the last token to compute, and the first position that is scored. */
  #reuse(): void {
    const { prompt } = this.#options;
    const most = Math.floor((this.scores.first - 1) / promptBlock);
    const blocks = this.#prefixes.find(this.#source, prompt, most);
    for (const block of blocks) {
      this.#row.appendFrom(block, 0, 0, promptBlock, 0);
      this.#hitTokens += promptBlock;
    }
    const last = blocks.at(-1);
    if (last !== undefined) this.#row.copyStates(last, 0, 0);
  }

  #remember(index: number): void {
    const { states, ...tokensAlone } = this.#shape;
    const withStates = states !== undefined && this.#keepsStates(index);
    const block = new KvRows(withStates ? this.#shape : tokensAlone, promptBlock, 1);
    block.appendFrom(this.#row, 0, index * promptBlock, promptBlock, 0);
    // The row has just been read up to the end of this block.
    block.copyStates(this.#row, 0, 0);
    this.#prefixes.add(this.#source, this.#options.prompt, index, block);
  }

  /**
   * States are kept where this prompt and its continuations will look for them, and now and then before:
   * in a model of 0.8 billion parameters they take thirteen times the keys and values of a block.
   */
  #keepsStates(index: number): boolean {
    const ends = [this.#options.prompt.length, this.scores.first - 1];
    const blocks = index + 1;
    const isLookedFor = ends.some((end) => blocks === Math.floor(end / promptBlock));
    return isLookedFor || blocks % blocksBetweenStates === 0;
  }
}

/** Copied, because the decoder reuses its arrays. */
function copyOf({ logits, logprobs, logprobSum, probabilities }: DecodedRow): DecodedRow {
  return {
    logits: logits.slice(),
    logprobs: logprobs.slice(),
    logprobSum,
    probabilities: probabilities.slice(),
  };
}

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
