import type { LayerKind } from "@tinker-ts/hub/weights";
import type { BufferPool } from "../execution/buffer-pool.js";
import { addInto } from "../util/arrays.js";
import type { AttentionBlock, LongArrangement } from "./micro-batch.js";
import { gradientName } from "./graphs/trained.js";
import type { TrainingPrograms } from "./training-programs.js";

/** Queries, keys and values of one sequence. */
export interface AttentionValues {
  readonly query: Float32Array;
  readonly key: Float32Array;
  readonly value: Float32Array;
}

/** Widths of their rows. */
export interface AttentionWidths {
  readonly query: number;
  readonly key: number;
}

/** Runs the attention of a long sequence block by block, on views of the sequence's arrays. */
export class AttentionBlocks {
  readonly #widths: AttentionWidths;
  readonly #programs: TrainingPrograms;
  readonly #pool: BufferPool;

  constructor(widths: AttentionWidths, programs: TrainingPrograms, pool: BufferPool) {
    this.#widths = widths;
    this.#programs = programs;
    this.#pool = pool;
  }

  async forward(
    arrangement: LongArrangement,
    kind: LayerKind,
    values: AttentionValues,
    attended: Float32Array,
    pause: () => Promise<void>,
  ): Promise<void> {
    const program = await this.#programs.attentionBlockForward(kind);
    for (const block of arrangement.blocks(kind.window)) {
      await pause();
      const feeds = { ...block.feeds, ...this.#visible(block, values) };
      await program.run(feeds, { attended: this.#queryRows(block, attended) }, block.sizes);
    }
  }

  /** Writes the gradients of queries, keys and values. */
  async backward(
    arrangement: LongArrangement,
    kind: LayerKind,
    values: AttentionValues & { readonly attended: Float32Array },
    gradientOfAttended: Float32Array,
    gradients: AttentionValues,
    pause: () => Promise<void>,
  ): Promise<void> {
    const program = await this.#programs.attentionBlockBackward(kind);
    const blocks = arrangement.blocks(kind.window);
    const [first] = blocks;
    // Without windows the first block sees every key, and writes the gradients that others are added to.
    const complete = first?.keyStart === 0 ? first : undefined;
    if (complete === undefined) for (const sum of [gradients.key, gradients.value]) sum.fill(0);
    for (const block of blocks) {
      await pause();
      const { query, key, value } = this.#visible(block, gradients);
      const keyPart = block === complete ? key : this.#pool.take(key.length);
      const valuePart = block === complete ? value : this.#pool.take(value.length);
      const feeds = {
        ...block.feeds,
        ...this.#visible(block, values),
        attended: this.#queryRows(block, values.attended),
        [gradientName("attended")]: this.#queryRows(block, gradientOfAttended),
      };
      const results = {
        [gradientName("query")]: query,
        [gradientName("key")]: keyPart,
        [gradientName("value")]: valuePart,
      };
      await program.run(feeds, results, block.sizes);
      if (block === complete) continue;
      addInto(key, keyPart);
      addInto(value, valuePart);
      this.#pool.giveBack(keyPart, valuePart);
    }
  }

  /** A block's queries with the keys and values in its range. */
  #visible(block: AttentionBlock, { query, key, value }: AttentionValues) {
    const width = this.#widths.key;
    const [start, end] = [block.keyStart * width, block.queryEnd * width];
    return {
      query: this.#queryRows(block, query),
      key: key.subarray(start, end),
      value: value.subarray(start, end),
    };
  }

  #queryRows(block: AttentionBlock, array: Float32Array): Float32Array {
    const width = this.#widths.query;
    return array.subarray(block.queryStart * width, block.queryEnd * width);
  }
}
