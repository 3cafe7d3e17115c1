import type { AdapterSet, FrozenAdapter } from "./adapter-set.js";
import { decodedRow, type DecodedRow, type Decoder, type DecoderOutput } from "./decoder.js";
import type { KvMemory } from "./kv-memory.js";
import { KvRows, type KvShape } from "./kv-rows.js";
import { promptBlock, type PrefixCache, type PrefixSource } from "./prefix-cache.js";
import { PromptScores } from "./prompt-scores.js";
import type { CheckedSampleOptions } from "./request.js";

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
