import type { ModelConfig } from "./model-config.js";

/** Name of the embedding matrix, [vocabSize, hiddenSize]. */
export const embeddingName = "model.embed_tokens.weight";

/** Name of the scale of the last norm, [hiddenSize]. */
export const finalNormName = "model.norm.weight";

/** Name of the unembedding matrix, [vocabSize, hiddenSize]; absent from models with tied embeddings. */
export const unembeddingName = "lm_head.weight";

/** A tensor of one layer, as Hugging Face names it after `model.layers.N.`. */
export type LayerTensor =
  | "input_layernorm.weight"
  | "post_attention_layernorm.weight"
  | `self_attn.${"q" | "k" | "v" | "o"}_proj.${"weight" | "bias"}`
  | `self_attn.${"q" | "k"}_norm.weight`
  | `mlp.${"gate" | "up" | "down"}_proj.${"weight" | "bias"}`;

/** The full name of a layer's tensor; layers count from zero. */
export function layerTensorName(layer: number, tensor: LayerTensor): string {
  return `model.layers.${layer}.${tensor}`;
}

/** Every tensor that a model of this configuration consists of, with its shape, in order of use. */
export function expectedTensors(config: ModelConfig): Map<string, readonly number[]> {
  const { vocabSize, hiddenSize } = config;
  const tensors = new Map<string, readonly number[]>([[embeddingName, [vocabSize, hiddenSize]]]);
  const perLayer = layerTensors(config);
  for (let layer = 0; layer < config.layers; layer++) {
    for (const [tensor, shape] of perLayer) tensors.set(layerTensorName(layer, tensor), shape);
  }
  tensors.set(finalNormName, [hiddenSize]);
  if (!config.tiedEmbeddings) tensors.set(unembeddingName, [vocabSize, hiddenSize]);
  return tensors;
}

function layerTensors(config: ModelConfig): [LayerTensor, readonly number[]][] {
  const { hiddenSize, intermediateSize, headDim } = config;
  const queries = config.heads * headDim;
  const keys = config.kvHeads * headDim;
  type Tensors = [LayerTensor, readonly number[]][];
  const only = (present: boolean, tensors: Tensors): Tensors => (present ? tensors : []);
  return [
    ["input_layernorm.weight", [hiddenSize]],
    ["self_attn.q_proj.weight", [queries, hiddenSize]],
    ["self_attn.k_proj.weight", [keys, hiddenSize]],
    ["self_attn.v_proj.weight", [keys, hiddenSize]],
    ...only(config.qkvBias, [
      ["self_attn.q_proj.bias", [queries]],
      ["self_attn.k_proj.bias", [keys]],
      ["self_attn.v_proj.bias", [keys]],
    ]),
    ...only(config.qkNorm, [
      ["self_attn.q_norm.weight", [headDim]],
      ["self_attn.k_norm.weight", [headDim]],
    ]),
    ["self_attn.o_proj.weight", [hiddenSize, queries]],
    ...only(config.outputBias, [["self_attn.o_proj.bias", [hiddenSize]]]),
    ["post_attention_layernorm.weight", [hiddenSize]],
    ["mlp.gate_proj.weight", [intermediateSize, hiddenSize]],
    ["mlp.up_proj.weight", [intermediateSize, hiddenSize]],
    ["mlp.down_proj.weight", [hiddenSize, intermediateSize]],
    ...only(config.mlpBias, [
      ["mlp.gate_proj.bias", [intermediateSize]],
      ["mlp.up_proj.bias", [intermediateSize]],
      ["mlp.down_proj.bias", [hiddenSize]],
    ]),
  ];
}
