import type { ModelConfig } from "../files/model-config.js";
import { siteModule, siteWidths, type Site } from "./sites.js";

/** Weights of one transformer layer; the biases and head norms exist in some families only. */
export type LayerWeightKey =
  | "inputNorm"
  | "q"
  | "k"
  | "v"
  | "qBias"
  | "kBias"
  | "vBias"
  | "qNorm"
  | "kNorm"
  | "o"
  | "postNorm"
  | "gate"
  | "up"
  | "down";

/** A weight's place in a Hugging Face model. */
export interface WeightSpec {
  readonly name: string;
  readonly shape: readonly number[];
}

/** The weights of a layer by key. */
export type LayerWeights<T> = { readonly [K in LayerWeightKey]?: T };

/** Weights outside the layers; `head` is absent when it is the embedding itself. */
export interface OuterWeights<T> {
  readonly embedding: T;
  readonly finalNorm: T;
  readonly head?: T;
}

/** Names and shapes of a layer's weights. */
export function layerWeightSpecs(config: ModelConfig, layer: number): LayerWeights<WeightSpec> {
  const prefix = `model.layers.${layer}`;
  const linear = (site: Site): WeightSpec => {
    const { inputs, outputs } = siteWidths(config, site);
    return { name: `${siteModule(site, layer)}.weight`, shape: [outputs, inputs] };
  };
  const bias = (site: Site): WeightSpec => ({
    name: `${siteModule(site, layer)}.bias`,
    shape: [siteWidths(config, site).outputs],
  });
  const norm = (module: string, width: number): WeightSpec => ({
    name: `${prefix}.${module}.weight`,
    shape: [width],
  });
  return {
    inputNorm: norm("input_layernorm", config.hiddenSize),
    q: linear("q"),
    k: linear("k"),
    v: linear("v"),
    ...(config.qkvBias ? { qBias: bias("q"), kBias: bias("k"), vBias: bias("v") } : {}),
    ...(config.qkNorm
      ? {
          qNorm: norm("self_attn.q_norm", config.headDim),
          kNorm: norm("self_attn.k_norm", config.headDim),
        }
      : {}),
    o: linear("o"),
    postNorm: norm("post_attention_layernorm", config.hiddenSize),
    gate: linear("gate"),
    up: linear("up"),
    down: linear("down"),
  };
}

/** Names and shapes of the weights outside the layers. */
export function outerWeightSpecs(config: ModelConfig): OuterWeights<WeightSpec> {
  const table = [config.vocabSize, config.hiddenSize];
  return {
    embedding: { name: "model.embed_tokens.weight", shape: table },
    finalNorm: { name: "model.norm.weight", shape: [config.hiddenSize] },
    ...(config.tiedEmbeddings ? {} : { head: { name: "lm_head.weight", shape: table } }),
  };
}
