import type { ModelConfig } from "../files/model-config.js";
import {
  add,
  dimAt,
  gatedSilu,
  maskedAttention,
  reshape,
  rmsNorm,
  rotary,
  type RotaryTables,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import { at } from "../util/at.js";
import type { AttentionLayout } from "./attention-layouts.js";
import type { SiteGroup } from "./sites.js";
import type { LayerWeights, OuterWeights } from "./weights.js";

// The transformer, written once. Training forward and backward, prefill and decode are all compiled
// from these functions; they differ in what surrounds them: which inputs are fed, which values are
// differentiated, and how a `Projector` adds adapters to the linear layers.

/** Applies the linear layers of one group to a value [tokens, inputs]. */
export type Projector = (group: SiteGroup, value: Tensor) => readonly Tensor[];

/** Queries, keys and values of a layer, one row per token. */
export interface AttentionInputs {
  /** Rotated, [tokens, 1, heads * headDim]. */
  readonly query: Tensor;
  /** Rotated, [tokens, 1, kvHeads * headDim]. */
  readonly key: Tensor;
  /** [tokens, kvHeads * headDim] */
  readonly value: Tensor;
}

/** The first part of a layer: from hidden states to what attention reads. */
export function attentionInputs(
  config: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  positions: Tensor,
  tables: RotaryTables,
): AttentionInputs {
  const normalized = rmsNorm(hidden, given(weights.inputNorm), config.normEpsilon);
  const projections = project("qkv", normalized);
  const [rawQuery, rawKey, value] = [at(projections, 0), at(projections, 1), at(projections, 2)];
  const query = headNorm(config, rawQuery, weights.qNorm, config.heads);
  const key = headNorm(config, rawKey, weights.kNorm, config.kvHeads);
  return {
    query: rotary(asBatch(query), positions, tables, config.heads),
    key: rotary(asBatch(key), positions, tables, config.kvHeads),
    value,
  };
}

/**
 * Attention of tokens to the tokens of their own sequence up to themselves. How rows of tokens become
 * stacks of heads is the layout's business; the result has the shape that the layout collects to.
 */
export function attention(
  config: ModelConfig,
  { query, key, value }: Pick<AttentionInputs, "query" | "key" | "value">,
  layout: AttentionLayout,
): Tensor {
  const { heads, kvHeads, headDim } = config;
  const group = heads / kvHeads;
  const { sequences, queries, mask } = layout;
  // Heads that share a key head are folded into its rows: [sequences, kvHeads, group * queries, headDim].
  const grouped = [sequences, kvHeads, queries.times(group), headDim];
  const perHead = [sequences, heads, queries, headDim];
  const attended = maskedAttention({
    query: reshape(layout.spreadQueries(query, heads), grouped),
    key: layout.spreadKeys(key, kvHeads),
    value: layout.spreadKeys(value, kvHeads),
    mask,
    group,
    scale: headDim ** -0.5,
    // A backward pass is given the collected result, and need not compute the stack again.
    recall: () => reshape(layout.spreadQueries(collected, heads), grouped),
  });
  const collected = layout.collect(reshape(attended, perHead), heads);
  return collected;
}

/** The second part of a layer: output projection, feed-forward and both residual connections. */
export function layerOutputs(
  config: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  attended: Tensor,
): Tensor {
  const rows = reshape(attended, [dimAt(hidden, 0), config.heads * config.headDim]);
  const middle = add(hidden, at(project("o", rows), 0));
  const normalized = rmsNorm(middle, given(weights.postNorm), config.normEpsilon);
  const projections = project("gateUp", normalized);
  const [gate, up] = [at(projections, 0), at(projections, 1)];
  const feedForward = at(project("down", gatedSilu(gate, up)), 0);
  return add(middle, feedForward);
}

/** Logits [tokens, vocabulary] from the hidden states of the last layer. */
export function logits(
  config: ModelConfig,
  weights: Pick<OuterWeights<Tensor>, "finalNorm">,
  project: Projector,
  hidden: Tensor,
): Tensor {
  const normalized = rmsNorm(hidden, weights.finalNorm, config.normEpsilon);
  return at(project("head", normalized), 0);
}

function headNorm(
  config: ModelConfig,
  rows: Tensor,
  weight: Tensor | undefined,
  heads: number,
): Tensor {
  if (weight === undefined) return rows;
  const perHead = reshape(rows, [dimAt(rows, 0), heads, config.headDim]);
  return reshape(rmsNorm(perHead, weight, config.normEpsilon), rows.shape);
}

function asBatch(rows: Tensor): Tensor {
  return reshape(rows, [dimAt(rows, 0), 1, dimAt(rows, 1)]);
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a weight of the layer is missing");
  return value;
}
