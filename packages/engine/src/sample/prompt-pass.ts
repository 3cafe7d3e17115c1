import { at } from "../util/at.js";
import type { AdapterSet, FrozenAdapter } from "./adapter-set.js";
import { checkLogprobs } from "./check-logprobs.js";
import { decodedRow, type DecodedRow, type Decoder, type DecoderOutput } from "./decoder.js";
import type { KvMemory } from "./kv-memory.js";
import { KvRows, type KvShape } from "./kv-rows.js";
import { largest } from "./pick-token.js";
import { promptBlock, type PrefixCache } from "./prefix-cache.js";
import type { TopTokens } from "./reported-logprobs.js";
import type { CheckedSampleOptions } from "./request.js";

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
  readonly #logprobs: Float32Array;
  readonly #topTokens: (TopTokens | null)[];
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
  get next(): DecodedRow | undefined {
    return this.#next;
  }

  /** Gives the memory back; the pass must not be used any more. */
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
    const scored = this.#wantsLogprobs() ? rows : [];
    const isLast = end === prompt.length;
    const use = (output: DecoderOutput, first: number): void => {
      for (const [index] of output.logprobSum.entries()) {
        const row = first + index;
        const said = decodedRow(output, index);
        if (row < scored.length) this.#score(said, start + row + 1);
        else this.#next = copyOf(said);
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
  #score(said: DecodedRow, position: number): void {
    const { prompt, topkPromptLogprobs } = this.#options;
    if (position >= prompt.length) return;
    checkLogprobs(said);
    const { logits, logprobs } = said;
    this.#logprobs[position] = at(logprobs, at(prompt, position));
    if (topkPromptLogprobs === 0) return;
    const tokens = largest(logits, topkPromptLogprobs);
    this.#topTokens[position] = tokens.map((token) => ({ token, logprob: at(logprobs, token) }));
  }
}

/** The decoder uses its arrays again. */
function copyOf({ logits, logprobs, logprobSum, probabilities }: DecodedRow): DecodedRow {
  return {
    logits: logits.slice(),
    logprobs: logprobs.slice(),
    logprobSum,
    probabilities: probabilities.slice(),
  };
}
