import type { ModelConfig } from "../files/model-config.js";
import {
  embeddingName,
  expectedTensors,
  finalNormName,
  layerNorms,
  layerTensorName,
  unembeddingName,
  type LayerNorms,
  type LayerTensor,
} from "../files/tensor-names.js";

/**
 * Tensors of a layer by the short names that graphs use, norms by their place; each model has some of
 * them.
 */
const layerTensors = {
  inputNorm: "beforeAttention",
  q: "self_attn.q_proj.weight",
  k: "self_attn.k_proj.weight",
  v: "self_attn.v_proj.weight",
  qkv: "self_attn.qkv_proj.weight",
  qBias: "self_attn.q_proj.bias",
  kBias: "self_attn.k_proj.bias",
  vBias: "self_attn.v_proj.bias",
  qkvBias: "self_attn.qkv_proj.bias",
  qNorm: "self_attn.q_norm.weight",
  kNorm: "self_attn.k_norm.weight",
  o: "self_attn.o_proj.weight",
  oBias: "self_attn.o_proj.bias",
  attendedNorm: "afterAttention",
  middleNorm: "beforeMlp",
  gate: "mlp.gate_proj.weight",
  up: "mlp.up_proj.weight",
  gateUp: "mlp.gate_up_proj.weight",
  down: "mlp.down_proj.weight",
  gateBias: "mlp.gate_proj.bias",
  upBias: "mlp.up_proj.bias",
  gateUpBias: "mlp.gate_up_proj.bias",
  downBias: "mlp.down_proj.bias",
  outputNorm: "afterMlp",
} as const satisfies Record<string, LayerTensor | keyof LayerNorms>;

/** Short name of a tensor of a layer. */
export type LayerWeightKey = keyof typeof layerTensors;

/** Things that belong to the weights of a layer, by key. */
export type LayerWeights<T> = { readonly [K in LayerWeightKey]?: T };

/** Things that belong to the weights outside the layers; `head` is absent when it is the embedding. */
export interface OuterWeights<T> {
  readonly embedding: T;
  readonly finalNorm: T;
  readonly head?: T;
}

/** A weight's name and shape in a Hugging Face model. */
export interface WeightSpec {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Names and shapes of a layer's weights. */
export function layerWeightSpecs(config: ModelConfig, layer: number): LayerWeights<WeightSpec> {
  const tensors = expectedTensors({ ...config, layers: layer + 1 });
  const norms = layerNorms(config);
  const specs: { [K in LayerWeightKey]?: WeightSpec } = {};
  for (const key of layerWeightKeys) {
    const entry = layerTensors[key];
    const tensor = isNormPlace(entry) ? norms[entry] : entry;
    if (tensor === undefined) continue;
    const name = layerTensorName(layer, tensor);
    const shape = tensors.get(name);
    if (shape !== undefined) specs[key] = { name, shape };
  }
  return specs;
}

/** Names and shapes of the weights outside the layers. */
export function outerWeightSpecs(config: ModelConfig): OuterWeights<WeightSpec> {
  const table = [config.vocabSize, config.hiddenSize];
  return {
    embedding: { name: embeddingName, shape: table },
    finalNorm: { name: finalNormName, shape: [config.hiddenSize] },
    ...(config.tiedEmbeddings ? {} : { head: { name: unembeddingName, shape: table } }),
  };
}

/**
 * Rows of fewer numbers stay in 32 bits: products of them are about as fast there, and few errors of rounding
 * average less than many.
 */
const shortestInt8Row = 128;

/** Whether a weight of this shape is held in 8 bits. */
export function isHeldInInt8({ precision }: ModelConfig, shape: readonly number[]): boolean {
  const [, columns = 0] = shape;
  return precision !== undefined && columns >= shortestInt8Row;
}

/** Name of the feed with the scales of a weight in 8 bits. */
export function scaleName(weight: string): string {
  return `${weight}.scale`;
}

/** Name of the feed with a weight in 8 bits the other way round, [inputs, outputs]. */
export function forwardName(weight: string): string {
  return `${weight}.forward`;
}

/** Every key, in order of use. */
export const layerWeightKeys = Object.keys(layerTensors).filter(isLayerWeightKey);

function isLayerWeightKey(key: string): key is LayerWeightKey {
  return key in layerTensors;
}

function isNormPlace(entry: LayerTensor | keyof LayerNorms): entry is keyof LayerNorms {
  return !entry.includes(".");
}
