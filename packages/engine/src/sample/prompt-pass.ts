import { at } from "../util/at.js";
import { AdapterSet, type FrozenAdapter, type MembershipFeeds } from "./adapter-set.js";
import { checkLogits } from "./check-logits.js";
import type { Decoder } from "./decoder.js";
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
  readonly #membership: MembershipFeeds;
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
    this.#membership = adapters.membership([adapter.id]);
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
    const { prompt } = this.#options;
    const start = this.#row.length(0);
    const end = Math.min(prompt.length, start + promptBlock);
    const hidden = await this.#decoder.run({
      tokens: prompt.subarray(start, end),
      sequences: 1,
      newTokens: end - start,
      cache: this.#row,
      adapters: this.#adapters,
      membership: this.#membership,
    });
    if (end - start === promptBlock) this.#remember(start / promptBlock);
    if (this.#wantsLogprobs()) await this.#score(hidden, start, end);
    if (end === prompt.length) await this.#finish(hidden, end - start);
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

  async #score(hidden: Float32Array, start: number, end: number): Promise<void> {
    const { prompt, topkPromptLogprobs } = this.#options;
    const count = end - start;
    const temperatures = Array.from({ length: count }, () => 1);
    const rows = { sequences: 1, newTokens: count };
    const output = await this.#decoder.head(
      hidden,
      rows,
      temperatures,
      this.#adapters,
      this.#membership,
    );
    for (let row = 0; row < count && start + row + 1 < prompt.length; row++) {
      const logits = this.#rowOf(output.logits, row);
      const logSumExp = at(output.logSumExp, row);
      checkLogits(logSumExp);
      const position = start + row + 1;
      this.#logprobs[position] = at(logits, at(prompt, position)) - logSumExp;
      if (topkPromptLogprobs > 0) {
        const tokens = largest(logits, topkPromptLogprobs);
        this.#topTokens[position] = tokens.map((token) => ({
          token,
          logprob: at(logits, token) - logSumExp,
        }));
      }
    }
  }

  async #finish(hidden: Float32Array, rows: number): Promise<void> {
    const width = hidden.length / rows;
    const last = hidden.subarray((rows - 1) * width);
    const one = { sequences: 1, newTokens: 1 };
    const { temperature } = this.#options;
    const output = await this.#decoder.head(
      last,
      one,
      [temperature],
      this.#adapters,
      this.#membership,
    );
    this.#next = {
      logits: output.logits.slice(),
      probabilities: output.probabilities.slice(),
      logSumExp: at(output.logSumExp, 0),
    };
  }

  #rowOf(values: Float32Array, row: number): Float32Array {
    return values.subarray(row * this.#vocabSize, (row + 1) * this.#vocabSize);
  }
}
