import { describeShape } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { at } from "../../util/arrays.js";
import { dimAt } from "./shape.js";

/** Inputs of attention with a cache: some new tokens of every sequence, and the earlier ones. */
export interface CachedAttentionOperands {
  /** [sequences, newTokens, heads * width] */
  readonly query: Tensor;
  /** Of the new tokens, [sequences, newTokens, keyHeads * width]. */
  readonly key: Tensor;
  readonly value: Tensor;
  /** Of the earlier ones, [sequences, keyHeads, capacity, width]. */
  readonly cachedKeys: Tensor;
  readonly cachedValues: Tensor;
  /** Where each sequence's last new token belongs, [sequences], as 32 bits. */
  readonly lastPlaces: Tensor;
  /** Tokens of the longest sequence with its new ones, [1], as 32 bits. */
  readonly longest: Tensor;
  /** Factor of the scores. */
  readonly scale: number;
  /** Tokens that a token sees, itself included; null for all before it. */
  readonly window: number | null;
}

/** ONNX Runtime takes heads of a multiple of this. */
export const headStep = 8;

/**
 * Attention of new tokens to their sequence up to themselves, [sequences, newTokens, heads * width], and
 * the caches with the new tokens in their places; inference only.
 *
 * A cache that is fed and fetched as the same array is extended in place. Several new tokens need a
 * single sequence; a sequence's result does not depend on the others, nor on the capacity.
 */
export function cachedAttention(operands: CachedAttentionOperands): {
  readonly attended: Tensor;
  readonly keys: Tensor;
  readonly values: Tensor;
} {
  const { query, key, value, cachedKeys, cachedValues, lastPlaces, longest, scale, window } =
    operands;
  const width = dimAt(cachedKeys, 3).constant;
  const heads = dimAt(query, 2).constant;
  const keyHeads = dimAt(cachedKeys, 1).constant;
  if (width === undefined || heads === undefined || width % headStep !== 0) {
    const shape = describeShape(cachedKeys.shape);
    throw new Error(
      `heads must have a fixed width that is a multiple of ${headStep}, got ${shape}`,
    );
  }
  if (keyHeads === undefined) throw new Error("the number of key heads must be fixed");
  const outputs = query.graph.apply({
    type: "GroupQueryAttention",
    domain: "com.microsoft",
    inputs: [query, key, value, cachedKeys, cachedValues, lastPlaces, longest],
    attributes: {
      num_heads: heads / width,
      kv_num_heads: keyHeads,
      scale: { float: scale },
      ...(window === null ? {} : { local_window_size: window }),
    },
    outputs: [{ shape: query.shape }, { shape: cachedKeys.shape }, { shape: cachedValues.shape }],
  });
  return { attended: at(outputs, 0), keys: at(outputs, 1), values: at(outputs, 2) };
}
