import { JsonFields } from "@tinker-ts/hub/files";
import { EngineError } from "../errors.js";
import { families, familyOf, type Architecture, type FamilyTraits } from "./families.js";
import { parseLayerKinds, type LayerKind } from "./layer-kinds.js";
import type { Int8Precision } from "./precision.js";
import { parseRopeConfigs, type RopeConfig } from "./rope-config.js";

export type { Architecture } from "./families.js";
export type { LayerKind, Rotation } from "./layer-kinds.js";
export type { RopeConfig, RopeScaling } from "./rope-config.js";

/**
 * What the engine needs to know of a model; parsed from a Hugging Face `config.json`.
 *
 * The engine computes what these features say, whatever the family is called. Those that are optional
 * are absent where a model does as Llama does.
 */
export interface ModelConfig {
  /** The family, for people to read. */
  readonly architecture: Architecture;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  /** Width of the feed-forward block. */
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values; several query heads may share one. */
  readonly kvHeads: number;
  readonly headDim: number;
  readonly normEpsilon: number;
  readonly rope: RopeConfig;
  /** Rotation of the layers whose kind names it (Gemma 3, those with a window). */
  readonly localRope?: RopeConfig;
  /** Attention of each layer. @default all see everything and rotate by `rope` */
  readonly layerKinds?: readonly LayerKind[];
  /** Longest sequence the model was made for, in tokens. */
  readonly contextLength: number;
  /** The unembedding is the embedding matrix itself. */
  readonly tiedEmbeddings: boolean;
  /** Biases on the q, k and v projections (Qwen2, and where `attention_bias` is set). */
  readonly qkvBias: boolean;
  /** A bias on the output projection of attention (where `attention_bias` is set). */
  readonly outputBias: boolean;
  /** Biases on the feed-forward projections (where `mlp_bias` is set). */
  readonly mlpBias: boolean;
  /** RMS norm on queries and keys (Qwen3, Gemma 3, OLMo 2). */
  readonly qkNorm: boolean;
  /** What is normed at once of queries and keys: a head, or all heads (OLMo 2). @default "head" */
  readonly qkNormSpan?: "head" | "all";
  /** Where norms stand: before a layer's blocks, after them (OLMo 2) or both (Gemma 3). @default "before" */
  readonly norms?: "before" | "after" | "around";
  /** Norms multiply by one plus their weight (Gemma 3). @default false */
  readonly normsPlusOne?: boolean;
  /** Of the feed-forward block's gate; "gelu" is the approximation by tanh. @default "silu" */
  readonly activation?: "silu" | "gelu";
  /** q, k and v are one matrix, and so are gate and up (Phi-3). @default false */
  readonly fusedProjections?: boolean;
  /** Factor of the scores of attention (Gemma 3, Granite). @default headDim ** -0.5 */
  readonly attentionScale?: number;
  /** Factor of embeddings (Gemma 3, Granite). @default 1 */
  readonly embeddingScale?: number;
  /** Factor of what a block adds to the hidden states (Granite). @default 1 */
  readonly residualScale?: number;
  /** Factor of logits (Granite). @default 1 */
  readonly logitScale?: number;
  /** What the engine computes with; no part of `config.json`. @default 32-bit floats */
  readonly precision?: Int8Precision;
  readonly bosTokenId: number | null;
  readonly eosTokenIds: readonly number[];
}

/** Checks a parsed `config.json` (and `generation_config.json`, if there is one) and refuses by name what the engine cannot compute. */
export function parseModelConfig(configJson: unknown, generationJson: unknown = {}): ModelConfig {
  const config = new JsonFields(configJson, "config.json", unsupported);
  const generation = new JsonFields(generationJson, "generation_config.json", unsupported);
  refuseUnsupportedParts(config);
  const architecture = familyOf(config);
  const traits: FamilyTraits = families[architecture];
  const vocabSize = config.integer("vocab_size", 1);
  const contextLength = config.integer("max_position_embeddings", 1);
  const layers = config.integer("num_hidden_layers", 1);
  const { heads, kvHeads, headDim } = parseHeads(config, traits);
  const layerKinds = parseLayerKinds(config, layers, contextLength, traits.layers);
  return {
    architecture,
    vocabSize,
    hiddenSize: config.integer("hidden_size", 1),
    intermediateSize: config.integer("intermediate_size", 1),
    layers,
    heads,
    kvHeads,
    headDim,
    normEpsilon: config.positive("rms_norm_eps", traits.normEpsilon),
    ...parseRopeConfigs(config, headDim, traits.rope),
    ...(layerKinds === undefined ? {} : { layerKinds }),
    contextLength,
    tiedEmbeddings: config.boolean("tie_word_embeddings", traits.tiedEmbeddings),
    ...parseBiases(config, traits),
    ...parseActivation(config, traits),
    ...parseScales(config, traits),
    ...traits.features,
    bosTokenId: parseTokenIds(config, "bos_token_id", vocabSize)[0] ?? null,
    eosTokenIds: parseTokenIds(
      generation.get("eos_token_id") === undefined ? config : generation,
      "eos_token_id",
      vocabSize,
    ),
  };
}

// Each of these changes the computation. Refusing them here means that nothing was allocated yet,
// and that no model loads only to produce nonsense.
function unsupported(message: string): EngineError {
  return new EngineError("unsupported_model", message);
}

function refuseUnsupportedParts(config: JsonFields): void {
  const present: readonly (readonly [field: string, meaning: string])[] = [
    [
      "quantization_config",
      "quantized weights are not supported: use the original F32, F16 or BF16 weights",
    ],
    ["vision_config", "models with vision are not supported"],
    ["audio_config", "models with audio are not supported"],
    ["text_config", "composite models are not supported"],
    ["attn_logit_softcapping", "soft caps on scores are not supported"],
    ["final_logit_softcapping", "soft caps on logits are not supported"],
  ];
  for (const [field, meaning] of present) {
    if (config.get(field) !== undefined) throw config.refuse(field, meaning);
  }
  for (const field of ["num_experts", "num_local_experts", "n_routed_experts"]) {
    if (config.integer(field, 0, 0) > 0) {
      throw config.refuse(field, "mixtures of experts are not supported");
    }
  }
  if (config.boolean("use_bidirectional_attention", false)) {
    throw config.refuse("use_bidirectional_attention", "tokens see earlier ones only");
  }
}

// As transformers has it: families differ in which of these they read. Tensors of biases that a family
// does not have are refused as unexpected when the weights are opened.
function parseBiases(
  config: JsonFields,
  { attentionBias, mlpBias }: FamilyTraits,
): Pick<ModelConfig, "qkvBias" | "outputBias" | "mlpBias"> {
  const flagged = config.boolean("attention_bias", false) && attentionBias === "flag";
  return {
    qkvBias: flagged || attentionBias === "qkv",
    outputBias: flagged,
    mlpBias: config.boolean("mlp_bias", false) && mlpBias,
  };
}

function parseActivation(
  config: JsonFields,
  { activation }: FamilyTraits,
): Pick<ModelConfig, "activation"> {
  const name = config.string(activation.field, activation.fallback);
  if (name === "silu") return {};
  if (name === "gelu_pytorch_tanh") return { activation: "gelu" };
  throw config.refuse(
    activation.field,
    'the activations supported are "silu" and "gelu_pytorch_tanh"',
  );
}

type Scales = Pick<
  ModelConfig,
  "attentionScale" | "embeddingScale" | "residualScale" | "logitScale"
>;

function parseScales(config: JsonFields, { scales }: FamilyTraits): Scales {
  switch (scales) {
    case "none":
      return {};
    case "query":
      return {
        attentionScale: config.positive("query_pre_attn_scalar", 256) ** -0.5,
        embeddingScale: Math.sqrt(config.integer("hidden_size", 1)),
      };
    case "multipliers":
      return {
        attentionScale: config.positive("attention_multiplier", 1),
        embeddingScale: config.positive("embedding_multiplier", 1),
        residualScale: config.positive("residual_multiplier", 1),
        logitScale: 1 / config.positive("logits_scaling", 1),
      };
  }
}

function parseHeads(
  config: JsonFields,
  traits: FamilyTraits,
): Pick<ModelConfig, "heads" | "kvHeads" | "headDim"> {
  const heads = config.integer("num_attention_heads", 1);
  const kvHeads = config.integer("num_key_value_heads", 1, heads);
  if (heads % kvHeads !== 0) {
    throw config.refuse("num_key_value_heads", `must divide num_attention_heads (${heads})`);
  }
  // Some families fix the size of heads; the others divide the hidden size.
  const fallback = traits.headDim ?? config.integer("hidden_size", 1) / heads;
  const headDim = config.integer("head_dim", 1, fallback);
  if (headDim % 2 !== 0) throw config.refuse("head_dim", "rotation needs an even number");
  return { heads, kvHeads, headDim };
}

/** Ids of special tokens. Files of small models may name ones beyond their vocabulary, which never occur. */
function parseTokenIds(fields: JsonFields, name: string, vocabSize: number): number[] {
  const value = fields.get(name) ?? [];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  const isId = (id: unknown): id is number =>
    typeof id === "number" && Number.isSafeInteger(id) && id >= 0;
  if (ids.every(isId)) return ids.filter((id) => id < vocabSize);
  throw fields.refuse(name, "must hold token ids, whole numbers of at least 0");
}
