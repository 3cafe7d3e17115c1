import { layerKind, mixerOf } from "@tinker-ts/hub/weights";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { gatherRows, logSoftmax, multiply, reduceSum, softmax } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { attendToCache } from "../../model/cached-attention.js";
import { CachedRecurrence } from "../../model/cached-recurrence.js";
import { declareLayerWeights, declareRotation, declareWeight } from "../../model/layer-inputs.js";
import type { ModelConfig } from "../../model/model-config.js";
import type { WeightFeeds } from "../../model/model-weights.js";
import { membershipOf, samplingProjector, sequenceRows } from "../../model/sampling-projector.js";
import {
  attentionInputs,
  attentionOutput,
  layerOutputs,
  logits,
  recurrentOutput,
} from "../../model/transformer.js";
import { outerWeightSpecs, scaleName } from "../../model/weights.js";
import { at } from "../../util/arrays.js";

/** Consecutive layers of a decoder, and whether the head comes after them. */
export interface DecoderPart {
  readonly first: number;
  readonly end: number;
  readonly head: boolean;
}

/** Weights that a part stores. */
export interface StoredWeights {
  /** Of the part's layers. */
  readonly layers: ReadonlyMap<number, WeightFeeds>;
  readonly outer: WeightFeeds;
}

/** Name of a value that belongs to a layer. */
export function ofLayer(layer: number, name: string): string {
  return `${layer}.${name}`;
}

/** Prefix of the names of the head's own feeds. */
export const headPrefix = "head.";

/**
 * A part of the model with a key-value cache, for decoding and for prompts alike: `newTokens` rows of each
 * of `sequences`. Weights that are given are stored in the model: the runtime packs them for its kernels once, and packed
 * products give a row the same bits in every batch. Of the unembedding it packs `matrixBytes` at a time.
 */
export function decoderPart(
  config: ModelConfig,
  part: DecoderPart,
  weights?: StoredWeights,
  matrixBytes = Infinity,
): CompiledGraph {
  const graph = new Graph();
  const rows = sequenceRows();
  const tokens = rows.sequences.times(rows.newTokens);
  const membership = membershipOf(graph, tokens);
  const indices = Array.from({ length: part.end - part.first }, (_, index) => part.first + index);
  const kinds = indices.map((layer) => layerKind(config, layer));
  const rotation = declareRotation(graph, config, kinds, tokens);
  let hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const outputs: Record<string, Tensor> = {};
  const stored: Record<string, Float32Array | Int8Array> = {};
  for (const layer of indices) {
    const kind = layerKind(config, layer);
    const prefix = ofLayer(layer, "");
    const { weights: tensors, sites } = declareLayerWeights(graph, config, kind, { prefix });
    for (const [key, data] of Object.entries(weights?.layers.get(layer) ?? {})) {
      stored[ofLayer(layer, key)] = data;
    }
    const project = samplingProjector(graph, config, sites, membership, prefix);
    let mixed: Tensor;
    if (mixerOf(kind) === "attention") {
      const inputs = attentionInputs(config, kind, tensors, project, hidden, rotation);
      const { attended, keys, values } = attendToCache(graph, config, kind, inputs, rows, prefix);
      outputs[ofLayer(layer, "extendedKeys")] = keys;
      outputs[ofLayer(layer, "extendedValues")] = values;
      mixed = attentionOutput(config, project, attended, tokens, inputs.queryGate);
    } else {
      const recurrence = new CachedRecurrence(graph, rows, prefix);
      mixed = recurrentOutput(config, kind, tensors, project, hidden, recurrence);
      Object.assign(outputs, recurrence.outputs);
    }
    hidden = layerOutputs(config, kind, tensors, project, hidden, mixed);
  }
  if (!part.head) return compileGraph(graph, { outputs: { ...outputs, next: hidden }, stored });
  const heads =
    weights === undefined ? [wholeHead(config)] : headParts(config, weights.outer, matrixBytes);
  for (const { data } of heads) Object.assign(stored, data);
  const { finalNorm } = weights?.outer ?? {};
  return compileGraph(graph, {
    outputs: { ...outputs, ...decoderHead(graph, config, heads, hidden) },
    stored: finalNorm === undefined ? stored : { ...stored, finalNorm },
  });
}

/** Rows of the unembedding under their own name, with their stored data. */
interface HeadPart {
  readonly name: string;
  readonly rows: number;
  readonly data: WeightFeeds;
}

function wholeHead({ vocabSize }: ModelConfig): HeadPart {
  return { name: "head", rows: vocabSize, data: {} };
}

/** The unembedding in parts of limited size. */
function headParts(
  config: ModelConfig,
  { head, [scaleName("head")]: scale }: WeightFeeds,
  matrixBytes: number,
): readonly HeadPart[] {
  if (head === undefined) throw new Error("there is no unembedding");
  const count = Math.max(1, Math.ceil(head.byteLength / matrixBytes));
  const width = config.hiddenSize;
  const most = Math.ceil(config.vocabSize / count);
  return Array.from({ length: Math.ceil(config.vocabSize / most) }, (_, index) => {
    const name = `head.${index}`;
    const [first, end] = [index * most, Math.min((index + 1) * most, config.vocabSize)];
    const values = head.subarray(first * width, end * width);
    const data = {
      [name]: values,
      ...(scale && { [scaleName(name)]: scale.subarray(first, end) }),
    };
    return { name, rows: end - first, data };
  });
}

/**
 * From chosen rows of hidden states to logits, and at the row's temperature to probabilities, their
 * logarithms and the sum of these, which is finite if they all are. A row's result is the same whichever others
 * were chosen.
 */
function decoderHead(
  graph: Graph,
  config: ModelConfig,
  heads: readonly HeadPart[],
  hidden: Tensor,
): Record<string, Tensor> {
  const count = Dim.symbol("headRows");
  const chosen = gatherRows(hidden, graph.input(`${headPrefix}rows`, [count], "int64"));
  const finalNorm = graph.input("finalNorm", outerWeightSpecs(config).finalNorm.shape);
  const parts = heads.map(({ name, rows: outputs }) =>
    declareWeight(graph, config, name, { shape: [outputs, config.hiddenSize] }),
  );
  const weight = parts.length === 1 ? at(parts, 0) : parts;
  const membership = membershipOf(graph, count, headPrefix);
  const project = samplingProjector(graph, config, () => ({ weight }), membership, "");
  const result = logits(config, { finalNorm }, project, chosen);
  const inverseTemperature = graph.input(`${headPrefix}inverseTemperature`, [count, 1]);
  const scaled = multiply(result, inverseTemperature);
  const logprobs = logSoftmax(scaled);
  return {
    logits: result,
    logprobs,
    logprobSum: reduceSum(logprobs, [1]),
    probabilities: softmax(scaled),
  };
}
