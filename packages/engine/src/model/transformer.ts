import { feedForwardOf, mixerOf, type LayerKind, type Rotation } from "@tinker-ts/hub/weights";
import {
  add,
  dimAt,
  gatherRows,
  maskedAttention,
  multiply,
  reshape,
  rmsNorm,
  rotary,
  scale,
  sigmoid,
  split,
  type RotaryTables,
} from "../graph/ops/index.js";
import type { Dim } from "../graph/dim.js";
import type { Tensor } from "../graph/tensor.js";
import type { ModelConfig } from "./model-config.js";
import { at } from "../util/arrays.js";
import { denseBlock } from "./feed-forward/dense.js";
import { gatedConvolution } from "./mixers/convolution.js";
import { deltaRule } from "./mixers/delta-rule.js";
import { mamba } from "./mixers/mamba.js";
import type { Recurrence } from "./mixers/recurrence.js";
import type { AttentionLayout } from "./attention-layouts.js";
import type { SiteGroup } from "./sites.js";
import type { LayerWeights, OuterWeights } from "./weights.js";

// The transformer, written once. Training forward and backward, prefill and decode are all compiled
// from these functions; they differ in what surrounds them: which inputs are fed, which values are
// differentiated, and how a `Projector` adds adapters to the linear layers. Families differ in the
// features of their configuration and in which weights they have.

/** Applies the linear layers of one group to a value [tokens, inputs]. */
export type Projector = (group: SiteGroup, value: Tensor) => readonly Tensor[];

/** Positions of the tokens, [tokens, 1], and by position the angles of each rotation and factors of queries. */
export interface RotationInputs {
  readonly positions: Tensor;
  readonly tables: Readonly<Partial<Record<Rotation, RotaryTables>>>;
  readonly growth: Readonly<Partial<Record<Rotation, Tensor>>>;
}

/** Queries, keys and values of a layer, one row per token; rotated if the layer rotates. */
export interface AttentionInputs {
  /** [tokens, 1, heads * headDim], or without the axis of one where nothing rotates. */
  readonly query: Tensor;
  /** [tokens, 1, kvHeads * headDim], or without the axis of one where nothing rotates. */
  readonly key: Tensor;
  /** [tokens, kvHeads * headDim] */
  readonly value: Tensor;
  /** Gate of the result of attention, [tokens, heads * headDim]; absent without a gate. */
  readonly queryGate?: Tensor;
}

/** The first part of a layer: from hidden states to the inputs of attention. */
export function attentionInputs(
  config: ModelConfig,
  kind: LayerKind,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  rotation: RotationInputs,
): AttentionInputs {
  const { heads, kvHeads, headDim } = config;
  const queryWidth = heads * headDim * (config.gatedAttention === true ? 2 : 1);
  const widths = [queryWidth, kvHeads * headDim, kvHeads * headDim];
  const parts = separate(project("qkv", mixerInput(config, weights, hidden)), widths);
  const { raw, gate } = withoutGate(config, at(parts, 0));
  const query = headNorm(config, raw, weights.qNorm, heads);
  const key = headNorm(config, at(parts, 1), weights.kNorm, kvHeads);
  return {
    query: grown(kind, rotated(kind, query, rotation, heads), rotation),
    key: rotated(kind, key, rotation, kvHeads),
    value: at(parts, 2),
    ...(gate === undefined ? {} : { queryGate: gate }),
  };
}

/** The input of a layer's mixer. */
function mixerInput(config: ModelConfig, weights: LayerWeights<Tensor>, hidden: Tensor): Tensor {
  return norm(config, hidden, weights.inputNorm);
}

/** Queries and their gates, which alternate head by head. */
function withoutGate(config: ModelConfig, rows: Tensor): { raw: Tensor; gate?: Tensor } {
  if (config.gatedAttention !== true) return { raw: rows };
  const { heads, headDim } = config;
  const tokens = dimAt(rows, 0);
  const [raw, gate] = split(reshape(rows, [tokens, heads, 2 * headDim]), 2, [headDim, headDim]);
  if (raw === undefined || gate === undefined) throw new Error("queries have no gate");
  const shape = [tokens, heads * headDim];
  return { raw: reshape(raw, shape), gate: reshape(gate, shape) };
}

/** The output of a mixer other than attention, to be added to the hidden states. */
export function recurrentOutput(
  config: ModelConfig,
  kind: LayerKind,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  recurrence: Recurrence,
): Tensor {
  const rows = mixerInput(config, weights, hidden);
  switch (mixerOf(kind)) {
    case "attention":
      throw new Error("attention has no state");
    case "deltaRule":
      return deltaRule(config, weights, project, rows, recurrence);
    case "convolution":
      return gatedConvolution(config, weights, project, rows, recurrence);
    case "mamba":
      return mamba(config, weights, project, rows, recurrence);
  }
}

/** The output of attention, to be added to the hidden states. */
export function attentionOutput(
  config: ModelConfig,
  project: Projector,
  attended: Tensor,
  tokens: Dim,
  gate?: Tensor,
): Tensor {
  const rows = reshape(attended, [tokens, config.heads * config.headDim]);
  return at(project("o", gate === undefined ? rows : multiply(rows, sigmoid(gate))), 0);
}

/**
 * Attention of tokens to the tokens of their own sequence up to themselves, within their window. The layout decides
 * how rows of tokens become stacks of heads; the result has the shape that the layout collects to.
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

/** Scale of attention scores. */
export function attentionScale({ attentionScale: given, headDim }: ModelConfig): number {
  return given ?? headDim ** -0.5;
}

/** The second part of a layer: feed-forward, and both residual connections. */
export function layerOutputs(
  config: ModelConfig,
  kind: LayerKind,
  weights: LayerWeights<Tensor>,
  project: Projector,
  hidden: Tensor,
  mixed: Tensor,
): Tensor {
  const middle = addBlock(config, hidden, mixed, weights.attendedNorm);
  const rows = norm(config, middle, weights.middleNorm);
  return addBlock(config, middle, feedForward(config, kind, project, rows), weights.outputNorm);
}

/** The output of a layer's feed-forward block for normed rows, to be added to the hidden states. */
function feedForward(
  config: ModelConfig,
  kind: LayerKind,
  project: Projector,
  rows: Tensor,
): Tensor {
  switch (feedForwardOf(kind)) {
    case "dense":
      return denseBlock(config, project, rows);
  }
}

/** Logits [tokens, vocabulary] from the hidden states of the last layer. */
export function logits(
  config: ModelConfig,
  weights: Pick<OuterWeights<Tensor>, "finalNorm">,
  project: Projector,
  hidden: Tensor,
): Tensor {
  const normalized = norm(config, hidden, weights.finalNorm);
  // The logit factor is applied to the hidden states, which are far smaller.
  return at(project("head", scaled(normalized, config.logitScale)), 0);
}

/** The residual connection around a block, with an optional norm and scale of the result. */
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

/** Scales queries by position. */
function grown({ rotation }: LayerKind, query: Tensor, inputs: RotationInputs): Tensor {
  const factors = rotation === null ? undefined : inputs.growth[rotation];
  return factors === undefined ? query : multiply(query, gatherRows(factors, inputs.positions));
}

/** The results of a group's linear layers one by one, also where one fused layer gives all of them. */
function separate(projections: readonly Tensor[], widths: readonly number[]): readonly Tensor[] {
  return projections.length === 1 ? split(at(projections, 0), 1, widths) : projections;
}

function scaled(value: Tensor, factor = 1): Tensor {
  return factor === 1 ? value : scale(value, factor);
}
