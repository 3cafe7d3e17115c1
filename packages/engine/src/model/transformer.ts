import type { ModelConfig } from "../files/model-config.js";
import { Dim } from "../graph/dim.js";
import {
  add,
  dimAt,
  gatherRows,
  maskedAttention,
  multiply,
  reshape,
  rmsNorm,
  rotary,
  scatterRows,
  silu,
  type RotaryTables,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import { at } from "../util/at.js";
import type { SiteGroup } from "./sites.js";
import type { LayerWeights, OuterWeights } from "./weights.js";

// The transformer, written once. Training forward and backward, prefill and decode are all compiled
// from these functions; they differ in what surrounds them: which inputs are fed, which values are
// differentiated, and how a `Projector` adds adapters to the linear layers.

/** Applies the linear layers of one group to a value [tokens, inputs]. */
export type Projector = (group: SiteGroup, value: Tensor) => readonly Tensor[];

/** Queries, keys and values of a layer, one row per token. */
export interface AttentionInputs {
  /** Rotated, [tokens, heads * headDim]. */
  readonly query: Tensor;
  /** Rotated, [tokens, kvHeads * headDim]. */
  readonly key: Tensor;
  /** [tokens, kvHeads * headDim] */
  readonly value: Tensor;
  /** Before head norm and rotation. */
  readonly rawQuery: Tensor;
  /** Before head norm and rotation. */
  readonly rawKey: Tensor;
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
    query: rotateRows(query, positions, tables, config.heads),
    key: rotateRows(key, positions, tables, config.kvHeads),
    value,
    rawQuery,
    rawKey,
  };
}

/** Where packed tokens stand in the padded layout of attention. */
export interface AttentionLayout {
  /** Slot of each (token, head) in [sequences, heads, queries]; [tokens * heads]. */
  readonly querySlots: Tensor;
  /** Slot of each (token, head) in [sequences, kvHeads, keys]; [keyTokens * kvHeads]. */
  readonly keySlots: Tensor;
  /** [queries, keys]; hides later positions. */
  readonly mask: Tensor;
  readonly sequences: Dim;
}

/** Attention of packed queries to packed keys, [tokens, heads * headDim]. */
export function packedAttention(
  config: ModelConfig,
  { query, key, value }: Pick<AttentionInputs, "query" | "key" | "value">,
  { querySlots, keySlots, mask, sequences }: AttentionLayout,
): Tensor {
  const { heads, kvHeads, headDim } = config;
  const group = heads / kvHeads;
  const [queries, keys] = [dimAt(mask, 0), dimAt(mask, 1)];
  const toSlots = (rows: Tensor, count: number, slots: Tensor, length: Dim): Tensor =>
    scatterRows(
      reshape(rows, [dimAt(rows, 0).times(count), headDim]),
      slots,
      sequences.times(length).times(count),
    );
  const keyStack = [sequences, kvHeads, keys, headDim];
  const queryStack = [sequences, kvHeads, queries.times(group), headDim];
  const attended = maskedAttention({
    query: reshape(toSlots(query, heads, querySlots, queries), queryStack),
    key: reshape(toSlots(key, kvHeads, keySlots, keys), keyStack),
    value: reshape(toSlots(value, kvHeads, keySlots, keys), keyStack),
    mask,
    group,
    scale: headDim ** -0.5,
    // A backward pass is given the packed result, and need not compute the padded one again.
    recall: () => reshape(toSlots(packed, heads, querySlots, queries), queryStack),
  });
  const slotCount = sequences.times(queries).times(heads);
  const rows = gatherRows(reshape(attended, [slotCount, headDim]), querySlots);
  const packed = reshape(rows, query.shape);
  return packed;
}

/** A layer's result and the values inside it that its gradient needs. */
export interface LayerOutputs {
  readonly hidden: Tensor;
  /** Hidden states between attention and feed-forward. */
  readonly middle: Tensor;
  readonly gate: Tensor;
  readonly up: Tensor;
}

/** The second part of a layer: output projection, feed-forward and both residual connections. */
export function layerOutputs(
  config: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  attended: Tensor,
): LayerOutputs {
  const middle = add(hidden, at(project("o", attended), 0));
  const normalized = rmsNorm(middle, given(weights.postNorm), config.normEpsilon);
  const projections = project("gateUp", normalized);
  const [gate, up] = [at(projections, 0), at(projections, 1)];
  const feedForward = at(project("down", multiply(silu(gate), up)), 0);
  return { hidden: add(middle, feedForward), middle, gate, up };
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

function rotateRows(rows: Tensor, positions: Tensor, tables: RotaryTables, heads: number): Tensor {
  return reshape(rotary(reshape(rows, [1, ...rows.shape]), positions, tables, heads), rows.shape);
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a weight of the layer is missing");
  return value;
}
