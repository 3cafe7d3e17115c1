import type { ModelConfig } from "./model-config.js";

/** Name of the embedding matrix, [vocabSize, hiddenSize]. */
export const embeddingName = "model.embed_tokens.weight";

/** Name of the scale of the last norm, [hiddenSize]. */
export const finalNormName = "model.norm.weight";

/** Name of the unembedding matrix, [vocabSize, hiddenSize]; absent from models with tied embeddings. */
export const unembeddingName = "lm_head.weight";

/** A tensor of one layer, as Hugging Face names it after `model.layers.N.`. */
export type LayerTensor =
  | `${"input" | "post_attention" | "pre_feedforward" | "post_feedforward"}_layernorm.weight`
  | `self_attn.${"q" | "k" | "v" | "qkv" | "o"}_proj.${"weight" | "bias"}`
  | `self_attn.${"q" | "k"}_norm.weight`
  | `mlp.${"gate" | "up" | "gate_up" | "down"}_proj.${"weight" | "bias"}`;

/** The norms of a layer by what they stand before or after. */
export interface LayerNorms {
  readonly beforeAttention?: LayerTensor;
  readonly afterAttention?: LayerTensor;
  readonly beforeMlp?: LayerTensor;
  readonly afterMlp?: LayerTensor;
}

// One name means two things: the norm after attention where there is one, otherwise that before the
// feed-forward block, which also comes after attention.
const normTensors: Readonly<Record<NonNullable<ModelConfig["norms"]>, LayerNorms>> = {
  before: {
    beforeAttention: "input_layernorm.weight",
    beforeMlp: "post_attention_layernorm.weight",
  },
  after: {
    afterAttention: "post_attention_layernorm.weight",
    afterMlp: "post_feedforward_layernorm.weight",
  },
  around: {
    beforeAttention: "input_layernorm.weight",
    afterAttention: "post_attention_layernorm.weight",
    beforeMlp: "pre_feedforward_layernorm.weight",
    afterMlp: "post_feedforward_layernorm.weight",
  },
};

/** The norms that a model's layers have. */
export function layerNorms({ norms = "before" }: ModelConfig): LayerNorms {
  return normTensors[norms];
}

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
  const wholeNorm = config.qkNormSpan === "all";
  const norms = layerNorms(config);
  type Tensors = [LayerTensor, readonly number[]][];
  const only = (present: boolean, tensors: Tensors): Tensors => (present ? tensors : []);
  const norm = (name: LayerTensor | undefined): Tensors =>
    name === undefined ? [] : [[name, [hiddenSize]]];
  const fused = config.fusedProjections === true;
  return [
    ...norm(norms.beforeAttention),
    ...only(fused, [["self_attn.qkv_proj.weight", [queries + 2 * keys, hiddenSize]]]),
    ...only(!fused, [
      ["self_attn.q_proj.weight", [queries, hiddenSize]],
      ["self_attn.k_proj.weight", [keys, hiddenSize]],
      ["self_attn.v_proj.weight", [keys, hiddenSize]],
    ]),
    ...only(config.qkvBias && fused, [["self_attn.qkv_proj.bias", [queries + 2 * keys]]]),
    ...only(config.qkvBias && !fused, [
      ["self_attn.q_proj.bias", [queries]],
      ["self_attn.k_proj.bias", [keys]],
      ["self_attn.v_proj.bias", [keys]],
    ]),
    ...only(config.qkNorm, [
      ["self_attn.q_norm.weight", [wholeNorm ? queries : headDim]],
      ["self_attn.k_norm.weight", [wholeNorm ? keys : headDim]],
    ]),
    ["self_attn.o_proj.weight", [hiddenSize, queries]],
    ...only(config.outputBias, [["self_attn.o_proj.bias", [hiddenSize]]]),
    ...norm(norms.afterAttention),
    ...norm(norms.beforeMlp),
    ...only(fused, [["mlp.gate_up_proj.weight", [2 * intermediateSize, hiddenSize]]]),
    ...only(!fused, [
      ["mlp.gate_proj.weight", [intermediateSize, hiddenSize]],
      ["mlp.up_proj.weight", [intermediateSize, hiddenSize]],
    ]),
    ["mlp.down_proj.weight", [hiddenSize, intermediateSize]],
    ...only(config.mlpBias && fused, [["mlp.gate_up_proj.bias", [2 * intermediateSize]]]),
    ...only(config.mlpBias && !fused, [
      ["mlp.gate_proj.bias", [intermediateSize]],
      ["mlp.up_proj.bias", [intermediateSize]],
    ]),
    ...only(config.mlpBias, [["mlp.down_proj.bias", [hiddenSize]]]),
    ...norm(norms.afterMlp),
  ];
}
