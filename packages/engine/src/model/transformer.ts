import type { LayerKind, ModelConfig, Rotation } from "../files/model-config.js";
import {
  add,
  dimAt,
  gatedGelu,
  gatedSilu,
  maskedAttention,
  reshape,
  rmsNorm,
  rotary,
  scale,
  split,
  type RotaryTables,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import { at } from "../util/at.js";
import type { AttentionLayout } from "./attention-layouts.js";
import type { SiteGroup } from "./sites.js";
import type { LayerWeights, OuterWeights } from "./weights.js";

// The transformer, written once. Training forward and backward, prefill and decode are all compiled
// from these functions; they differ in what surrounds them: which inputs are fed, which values are
// differentiated, and how a `Projector` adds adapters to the linear layers. Families differ in the
// features of their configuration and in which weights they have.

/** Applies the linear layers of one group to a value [tokens, inputs]. */
export type Projector = (group: SiteGroup, value: Tensor) => readonly Tensor[];

/** Positions of the tokens, [tokens, 1], and the angles of each rotation by position. */
export interface RotationInputs {
  readonly positions: Tensor;
  readonly tables: Readonly<Partial<Record<Rotation, RotaryTables>>>;
}

/** Queries, keys and values of a layer, one row per token; rotated if the layer rotates. */
export interface AttentionInputs {
  /** [tokens, 1, heads * headDim], or without the axis of one where nothing rotates. */
  readonly query: Tensor;
  /** [tokens, 1, kvHeads * headDim], or without the axis of one where nothing rotates. */
  readonly key: Tensor;
  /** [tokens, kvHeads * headDim] */
  readonly value: Tensor;
}

/** The first part of a layer: from hidden states to what attention reads. */
export function attentionInputs(
  config: ModelConfig,
  kind: LayerKind,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  rotation: RotationInputs,
): AttentionInputs {
  const { heads, kvHeads, headDim } = config;
  const widths = [heads * headDim, kvHeads * headDim, kvHeads * headDim];
  const parts = separate(project("qkv", norm(config, hidden, weights.inputNorm)), widths);
  const query = headNorm(config, at(parts, 0), weights.qNorm, heads);
  const key = headNorm(config, at(parts, 1), weights.kNorm, kvHeads);
  return {
    query: rotated(kind, query, rotation, heads),
    key: rotated(kind, key, rotation, kvHeads),
    value: at(parts, 2),
  };
}

/**
 * Attention of tokens to the tokens of their own sequence up to themselves, as far as they see. How rows of tokens become
 * stacks of heads is the layout's business; the result has the shape that the layout collects to.
 */
export function attention(
  config: ModelConfig,
  kind: LayerKind,
  { query, key, value }: AttentionInputs,
  layout: AttentionLayout,
): Tensor {
  const { heads, kvHeads, headDim } = config;
  const group = heads / kvHeads;
  const { sequences, queries } = layout;
  // Heads that share a key head are folded into its rows: [sequences, kvHeads, group * queries, headDim].
  const grouped = [sequences, kvHeads, queries.times(group), headDim];
  const perHead = [sequences, heads, queries, headDim];
  const attended = maskedAttention({
    query: reshape(layout.spreadQueries(query, heads), grouped),
    key: layout.spreadKeys(key, kvHeads),
    value: layout.spreadKeys(value, kvHeads),
    mask: layout.mask(kind.window),
    group,
    scale: attentionScale(config),
    // A backward pass is given the collected result, and need not compute the stack again.
    recall: () => reshape(layout.spreadQueries(collected, heads), grouped),
  });
  const collected = layout.collect(reshape(attended, perHead), heads);
  return collected;
}

/** Factor of attention's scores. */
export function attentionScale({ attentionScale: given, headDim }: ModelConfig): number {
  return given ?? headDim ** -0.5;
}

/** The second part of a layer: output projection, feed-forward and both residual connections. */
export function layerOutputs(
  config: ModelConfig,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  attended: Tensor,
): Tensor {
  const { intermediateSize } = config;
  const rows = reshape(attended, [dimAt(hidden, 0), config.heads * config.headDim]);
  const middle = addBlock(config, hidden, at(project("o", rows), 0), weights.attendedNorm);
  const projections = project("gateUp", norm(config, middle, weights.middleNorm));
  const parts = separate(projections, [intermediateSize, intermediateSize]);
  const gated = config.activation === "gelu" ? gatedGelu : gatedSilu;
  const feedForward = at(project("down", gated(at(parts, 0), at(parts, 1))), 0);
  return addBlock(config, middle, feedForward, weights.outputNorm);
}

/** Logits [tokens, vocabulary] from the hidden states of the last layer. */
export function logits(
  config: ModelConfig,
  weights: Pick<OuterWeights<Tensor>, "finalNorm">,
  project: Projector,
  hidden: Tensor,
): Tensor {
  const normalized = norm(config, hidden, weights.finalNorm);
  // The factor of logits is one of what they are products of, which is far smaller.
  return at(project("head", scaled(normalized, config.logitScale)), 0);
}

/** The residual connection around a block, whose result may be normed and scaled. */
function addBlock(
  config: ModelConfig,
  hidden: Tensor,
  block: Tensor,
  weight: Tensor | undefined,
): Tensor {
  return add(hidden, scaled(norm(config, block, weight), config.residualScale));
}

/** RMS norm over the last axis; the value itself where the model has no such norm. */
function norm(config: ModelConfig, value: Tensor, weight: Tensor | undefined): Tensor {
  if (weight === undefined) return value;
  const factor = config.normsPlusOne === true ? add(weight, value.graph.scalar(1)) : weight;
  return rmsNorm(value, factor, config.normEpsilon);
}

function headNorm(
  config: ModelConfig,
  rows: Tensor,
  weight: Tensor | undefined,
  heads: number,
): Tensor {
  if (config.qkNormSpan === "all") return norm(config, rows, weight);
  const perHead = [dimAt(rows, 0), heads, config.headDim];
  return weight ? reshape(norm(config, reshape(rows, perHead), weight), rows.shape) : rows;
}

function rotated(
  { rotation }: LayerKind,
  rows: Tensor,
  { positions, tables }: RotationInputs,
  heads: number,
): Tensor {
  if (rotation === null) return rows;
  const table = tables[rotation];
  if (table === undefined) throw new Error(`the graph has no angles of ${rotation}`);
  return rotary(reshape(rows, [dimAt(rows, 0), 1, dimAt(rows, 1)]), positions, table, heads);
}

/** The results of a group's linear layers one by one, also where one layer gives all of them. */
function separate(projections: readonly Tensor[], widths: readonly number[]): readonly Tensor[] {
  return projections.length === 1 ? split(at(projections, 0), 1, widths) : projections;
}

function scaled(value: Tensor, factor = 1): Tensor {
  return factor === 1 ? value : scale(value, factor);
}
