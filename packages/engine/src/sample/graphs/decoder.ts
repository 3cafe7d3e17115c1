import type { ModelConfig } from "../../files/model-config.js";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Graph } from "../../graph/graph.js";
import { logSumExp, multiply, softmax } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { attendToCache, declareCacheExtent } from "../../model/cached-attention.js";
import { declareLayerWeights, declareRotary, layerSites } from "../../model/layer-inputs.js";
import type { ModelWeights } from "../../model/model-weights.js";
import { membershipOf, samplingProjector, sequenceRows } from "../../model/sampling-projector.js";
import { attentionInputs, layerOutputs, logits } from "../../model/transformer.js";
import { layerWeightKeys, outerWeightSpecs } from "../../model/weights.js";
import { at } from "../../util/at.js";

/** Consecutive layers of a decoder. */
export interface LayerRange {
  readonly first: number;
  readonly end: number;
}

/** Name of a value that belongs to a layer. */
export function ofLayer(layer: number, name: string): string {
  return `${layer}.${name}`;
}

/**
 * Layers with a key-value cache, for decoding and for prompts alike: `newTokens` rows of each of
 * `sequences`. Weights are stored in the model: the runtime packs them for its kernels once, and packed
 * products give a row the same bits in every batch.
 */
export function decoderLayers(
  config: ModelConfig,
  weights: ModelWeights,
  { first, end }: LayerRange,
): CompiledGraph {
  const graph = new Graph();
  const rows = sequenceRows();
  const tokens = rows.sequences.times(rows.newTokens);
  const membership = membershipOf(graph, rows);
  const { positions, tables } = declareRotary(graph, config, tokens);
  const extent = declareCacheExtent(graph, rows);
  let hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const outputs: Record<string, Tensor> = {};
  const stored: Record<string, Float32Array> = {};
  for (let layer = first; layer < end; layer++) {
    const prefix = ofLayer(layer, "");
    const tensors = declareLayerWeights(graph, config, layerWeightKeys, prefix);
    for (const [key, data] of Object.entries(at(weights.layers, layer))) {
      stored[ofLayer(layer, key)] = data;
    }
    const lookup = layerSites(tensors);
    const project = samplingProjector(graph, config, lookup, rows, membership, prefix);
    const inputs = attentionInputs(config, tensors, project, hidden, positions, tables);
    const { attended, keys, values } = attendToCache(graph, config, inputs, extent, rows, prefix);
    outputs[ofLayer(layer, "extendedKeys")] = keys;
    outputs[ofLayer(layer, "extendedValues")] = values;
    hidden = layerOutputs(config, tensors, project, hidden, attended);
  }
  return compileGraph(graph, { outputs: { next: hidden, ...outputs }, stored });
}

/** From hidden states to logits, probabilities at a temperature, and the logits' log-sum-exp. */
export function decoderHead(config: ModelConfig, weights: ModelWeights): CompiledGraph {
  const graph = new Graph();
  const rows = sequenceRows();
  const tokens = rows.sequences.times(rows.newTokens);
  const membership = membershipOf(graph, rows);
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const specs = outerWeightSpecs(config);
  const finalNorm = graph.input("finalNorm", specs.finalNorm.shape);
  const weight = graph.input("head", specs.embedding.shape);
  const project = samplingProjector(graph, config, () => ({ weight }), rows, membership, "");
  const result = logits(config, { finalNorm }, project, hidden);
  const inverseTemperature = graph.input("inverseTemperature", [tokens, 1]);
  return compileGraph(graph, {
    outputs: {
      logits: result,
      probabilities: softmax(multiply(result, inverseTemperature)),
      logSumExp: logSumExp(result),
    },
    stored: { finalNorm: weights.finalNorm, head: weights.head },
  });
}
