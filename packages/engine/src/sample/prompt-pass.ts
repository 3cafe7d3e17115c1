import { at } from "../util/at.js";
import type { AdapterSet, FrozenAdapter } from "./adapter-set.js";
import { checkLogits } from "./check-logits.js";
import type { Decoder, DecoderOutput } from "./decoder.js";
import { KvRows, type KvShape } from "./kv-rows.js";
import { largest } from "./pick-token.js";
import { promptBlock, type PrefixCache } from "./prefix-cache.js";
import type { CheckedSampleOptions } from "./request.js";
import type { NextToken } from "./sequence.js";

/** Most likely tokens of a position with their log-probabilities, most likely first. */
export type TopTokens = readonly { readonly token: number; readonly logprob: number }[];

/**
 * Reads a prompt block by block.
 *
 * Blocks are aligned to the prompt's start and computed by themselves, so that their keys and values are
 * the same whoever reads them and whatever else is going on.
 */
export class PromptPass {
  readonly #options: CheckedSampleOptions;
  readonly #adapter: FrozenAdapter;
  readonly #adapters: AdapterSet;
  readonly #decoder: Decoder;
  readonly #prefixes: PrefixCache;
  readonly #shape: KvShape;
  readonly #vocabSize: number;
  readonly #logprobs: Float32Array;
  readonly #topTokens: (TopTokens | null)[];
  #row: KvRows;
  #next: NextToken | undefined;
  #hitTokens = 0;

  constructor(
    options: CheckedSampleOptions,
    adapter: FrozenAdapter,
    adapters: AdapterSet,
    decoder: Decoder,
    prefixes: PrefixCache,
    shape: KvShape,
    vocabSize: number,
  ) {
    this.#options = options;
    this.#adapter = adapter;
    this.#adapters = adapters;
    this.#decoder = decoder;
    this.#prefixes = prefixes;
    this.#shape = shape;
    this.#vocabSize = vocabSize;
    this.#row = new KvRows(shape, options.prompt.length, 1);
    this.#logprobs = new Float32Array(options.prompt.length).fill(NaN);
    this.#topTokens = [null];
    this.#reuse();
  }

  /** Prompt tokens whose keys and values were known already. */
  get hitTokens(): number {
    return this.#hitTokens;
  }

  /** Keys and values of the prompt. */
  get row(): KvRows {
    return this.#row;
  }

  /** Log-probability of each prompt token; that of the first is NaN. */
  get logprobs(): Float32Array {
    return this.#logprobs;
  }

  /** Most likely tokens at each prompt position; null at the first. */
  get topTokens(): readonly (TopTokens | null)[] {
    return this.#topTokens;
  }

  /** What the first token of every sample is drawn from, once the prompt has been read. */
  get next(): NextToken | undefined {
    return this.#next;
  }

  /** Reads one more block. */
  async step(): Promise<void> {
    const { prompt, temperature } = this.#options;
    const start = this.#row.length(0);
    const end = Math.min(prompt.length, start + promptBlock);
    const count = end - start;
    const rows = Array.from({ length: count }, (_, row) => row);
    const scored = this.#wantsLogprobs() ? rows : [];
    const isLast = end === prompt.length;
    const output = await this.#decoder.run({
      tokens: prompt.subarray(start, end),
      newTokens: count,
      cache: this.#row,
      adapters: this.#adapters,
      adapterIds: [this.#adapter.id],
      head: [
        ...scored.map((row) => ({ row, temperature: 1 })),
        ...(isLast ? [{ row: count - 1, temperature }] : []),
      ],
    });
    if (count === promptBlock) this.#remember(start / promptBlock);
    for (const row of scored) this.#score(this.#rowOf(output, row), start + row + 1);
    if (isLast) this.#next = copyOf(this.#rowOf(output, scored.length));
  }

  #wantsLogprobs(): boolean {
    return this.#options.promptLogprobs || this.#options.topkPromptLogprobs > 0;
  }

  /** Takes known blocks over, but always leaves the last token to compute. */
  #reuse(): void {
    if (this.#wantsLogprobs()) return;
    const { prompt } = this.#options;
    const most = Math.floor((prompt.length - 1) / promptBlock);
    for (const block of this.#prefixes.find(this.#adapter.id, prompt, most)) {
      this.#row.appendFrom(block, 0, 0, promptBlock, 0);
      this.#hitTokens += promptBlock;
    }
  }

  #remember(index: number): void {
    const block = new KvRows(this.#shape, promptBlock, 1);
    block.appendFrom(this.#row, 0, index * promptBlock, promptBlock, 0);
    this.#prefixes.add(this.#adapter.id, this.#options.prompt, index, block);
  }

  /** Notes what was said of a prompt token. */
  #score({ logits, logSumExp }: NextToken, position: number): void {
    const { prompt, topkPromptLogprobs } = this.#options;
    if (position >= prompt.length) return;
    checkLogits(logSumExp);
    this.#logprobs[position] = at(logits, at(prompt, position)) - logSumExp;
    if (topkPromptLogprobs === 0) return;
    const tokens = largest(logits, topkPromptLogprobs);
    this.#topTokens[position] = tokens.map((token) => ({
      token,
      logprob: at(logits, token) - logSumExp,
    }));
  }

  #rowOf({ logits, probabilities, logSumExp }: DecoderOutput, row: number): NextToken {
    const [start, end] = [row * this.#vocabSize, (row + 1) * this.#vocabSize];
    return {
      logits: logits.subarray(start, end),
      probabilities: probabilities.subarray(start, end),
      logSumExp: at(logSumExp, row),
    };
  }
}

/** The decoder uses its arrays again. */
function copyOf({ logits, probabilities, logSumExp }: NextToken): NextToken {
  return { logits: logits.slice(), probabilities: probabilities.slice(), logSumExp };
}
