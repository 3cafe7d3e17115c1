import type { ModelConfig } from "../files/model-config.js";
import { Dim, type DimLike } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import {
  add,
  concat,
  reshape,
  scale,
  softmax,
  split,
  stackMatmul,
  transpose,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import { at } from "../util/at.js";
import type { SequenceRows } from "./sampling-projector.js";
import type { AttentionInputs } from "./transformer.js";

/** Places for earlier tokens in a cache. */
const capacity = Dim.symbol("capacity");

/** Masks that all layers share. */
export interface CacheMasks {
  /** [sequences, 1, 1, 1, capacity]; hides unused places of the cache. */
  readonly cached: Tensor;
  /** [newTokens, newTokens]; hides later ones of the new tokens. */
  readonly fresh: Tensor;
}

/** Declares the masks of a batch. */
export function declareCacheMasks(graph: Graph, rows: SequenceRows): CacheMasks {
  const { sequences, newTokens } = rows;
  return {
    cached: graph.input("cachedMask", [sequences, 1, 1, 1, capacity]),
    fresh: graph.input("freshMask", [newTokens, newTokens]),
  };
}

/**
 * Attention of new tokens to cached ones and to each other, [tokens, heads * headDim].
 *
 * The cache, [sequences, kvHeads, capacity, headDim], is read where it lies: scores of old and new keys
 * are computed apart and joined before the softmax, so nothing is appended inside the graph. Every
 * (sequence, head) is a product of its own, which makes a sequence's result independent of what else is
 * in the batch, bit for bit.
 */
export function cachedAttention(
  graph: Graph,
  config: ModelConfig,
  inputs: Pick<AttentionInputs, "query" | "key" | "value">,
  masks: CacheMasks,
  rows: SequenceRows,
  prefix: string,
): Tensor {
  const { heads, kvHeads, headDim } = config;
  const { sequences, newTokens } = rows;
  const group = heads / kvHeads;
  // Leading ones keep the products of a stack apart; see `stackMatmul`.
  const keyShape = (length: DimLike): DimLike[] => [1, sequences, kvHeads, 1, length, headDim];
  const valueShape = (length: DimLike): DimLike[] => [1, ...keyShape(length)];
  const byToken = [sequences, newTokens, kvHeads, group, headDim];

  // Scaled before it is rearranged: a factor right before a product would be folded into it, and ONNX
  // Runtime has its fast kernel for single rows only for products without a factor.
  const scaled = scale(inputs.query, headDim ** -0.5);
  const query = transpose(reshape(scaled, byToken), [0, 2, 3, 1, 4]);
  const oldKey = graph.input(`${prefix}cachedKey`, keyShape(capacity));
  const newKey = transpose(
    reshape(inputs.key, [1, sequences, newTokens, kvHeads, 1, headDim]),
    [0, 1, 3, 4, 2, 5],
  );
  const oldScores = add(stackMatmul(query, oldKey, { transposeRight: true }), masks.cached);
  const newScores = add(stackMatmul(query, newKey, { transposeRight: true }), masks.fresh);
  // New keys come first: the place of every score in the softmax's sum is then the same for every
  // capacity, and unused places at the end add exact zeros.
  const probabilities = softmax(concat([newScores, oldScores], 5));
  const parts = split(probabilities, 5, [newTokens, capacity]);

  const oldValue = graph.input(`${prefix}cachedValue`, valueShape(capacity));
  const newValue = transpose(
    reshape(inputs.value, [1, 1, sequences, newTokens, kvHeads, 1, headDim]),
    [0, 1, 2, 4, 5, 3, 6],
  );
  const attended = add(stackMatmul(at(parts, 0), newValue), stackMatmul(at(parts, 1), oldValue));
  // From [1, 1, sequences, kvHeads, group, newTokens, headDim].
  const collected = transpose(attended, [0, 1, 2, 5, 3, 4, 6]);
  return reshape(collected, [sequences.times(newTokens), heads * headDim]);
}
