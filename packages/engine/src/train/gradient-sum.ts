import type { BufferPool } from "../execution/buffer-pool.js";
import { addInto } from "../util/arrays.js";
import type { ParameterFeed, ParameterLayout, Place } from "../model/parameter-layout.js";

/** A gradient among a program's results, and the parameter it belongs to. */
export interface GradientTarget {
  readonly result: string;
  readonly place: Place;
  readonly feed: string;
}

/**
 * Adds up gradients of the trained parameters over the runs of one call.
 *
 * The first gradient of a parameter is computed straight into the sum; later ones go to a spare array
 * and are added. Only `complete` makes the sum valid as a whole: parameters that no run reached are
 * zeroed then, so a fresh sum need not be cleared.
 */
export class GradientSum {
  readonly values: Float32Array;
  readonly #feeds = new Map<string, ParameterFeed>();
  readonly #written = new Set<string>();
  readonly #pool: BufferPool;

  constructor(layout: ParameterLayout, values: Float32Array, pool: BufferPool) {
    this.values = values;
    this.#pool = pool;
    for (const feed of layout.feeds) this.#feeds.set(keyOf(feed.place, feed.feed), feed);
    // The gradient of a tied unembedding is one of the embedding.
    const embedding = this.#feeds.get(keyOf("outer", "embedding"));
    const headKey = keyOf("outer", "head");
    if (embedding !== undefined && !this.#feeds.has(headKey)) this.#feeds.set(headKey, embedding);
  }

  /** Hands arrays for some gradients to `work` and adds what it wrote. */
  async collect(
    targets: readonly GradientTarget[],
    work: (results: Record<string, Float32Array>) => Promise<void>,
  ): Promise<void> {
    const results: Record<string, Float32Array> = {};
    const spares: { readonly sum: Float32Array; readonly part: Float32Array }[] = [];
    for (const { result, place, feed } of targets) {
      const { sum, fresh } = this.#sumOf(place, feed);
      if (fresh) {
        results[result] = sum;
      } else {
        const part = this.#pool.take(sum.length);
        results[result] = part;
        spares.push({ sum, part });
      }
    }
    await work(results);
    for (const { sum, part } of spares) {
      addInto(sum, part);
      this.#pool.giveBack(part);
    }
  }

  /** Adds gradients of embedding rows, which were scaled. */
  addEmbeddingRows(tokens: Int32Array, rows: Float32Array, scale = 1): void {
    const { sum, fresh } = this.#sumOf("outer", "embedding");
    if (fresh) sum.fill(0);
    const width = rows.length / tokens.length;
    const factor = Math.fround(scale);
    if (factor !== 1) for (let i = 0; i < rows.length; i++) rows[i] = (rows[i] ?? 0) * factor;
    for (const [index, token] of tokens.entries()) {
      const target = sum.subarray(token * width, (token + 1) * width);
      addInto(target, rows.subarray(index * width, (index + 1) * width));
    }
  }

  /** Zeroes gradients that were never written. */
  complete(): void {
    for (const { place, feed, offset, length } of this.#feeds.values()) {
      if (!this.#written.has(keyOf(place, feed))) this.values.fill(0, offset, offset + length);
    }
  }

  #sumOf(place: Place, name: string): { sum: Float32Array; fresh: boolean } {
    const feed = this.#feeds.get(keyOf(place, name));
    if (feed === undefined) throw new Error(`no parameter ${name} of ${place}`);
    const key = keyOf(feed.place, feed.feed);
    const fresh = !this.#written.has(key);
    this.#written.add(key);
    return { sum: this.values.subarray(feed.offset, feed.offset + feed.length), fresh };
  }
}

function keyOf(place: Place, feed: string): string {
  return `${place} ${feed}`;
}
