import { JsonFields } from "../files/json-fields.js";
import { EngineError } from "./engine-error.js";
import { families, familyOf, type Architecture, type FamilyTraits } from "./families.js";
import { refuseParts } from "./refused-models.js";
import { textConfigOf } from "./wrapped-models.js";
import { mixerOf, parseLayerKinds, type LayerKind } from "./layer-kinds.js";
import { parseMixers, type Mixer, type MixerConfigs } from "./mixer-config.js";
import { parseRopeConfigs, type RopeConfig, type RopeConfigs } from "./rope-config.js";

export type { Architecture } from "./families.js";
export type { LayerKind, Rotation } from "./layer-kinds.js";
export type { MambaConfig, Mixer, MixerConfigs } from "./mixer-config.js";
export type { QueryGrowth, RopeConfig, RopeScaling } from "./rope-config.js";

/**
 * A model's configuration as the engine needs it; parsed from a Hugging Face `config.json`.
 *
 * The engine computes by these features, independent of the family's name. Optional ones
 * are absent where a model does the same as Llama.
 */
export interface ModelConfig extends MixerConfigs {
  /** The family, for display. */
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
  /** Rotation of layers of the kind that refers to it (Gemma 3, those with a window). */
  readonly localRope?: RopeConfig;
  /** The kind of each layer. @default full attention, rotated by `rope` */
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
  /** The span of the norms on queries and keys: a head, or all heads (OLMo 2). @default "head" */
  readonly qkNormSpan?: "head" | "all";
  /** Where norms stand: before a layer's blocks, after them (OLMo 2) or both (Gemma 3). @default "before" */
  readonly norms?: "before" | "after" | "around";
  /** Norms multiply by one plus their weight (Gemma 3). @default false */
  readonly normsPlusOne?: boolean;
  /** Activation of the feed-forward block's gate; "gelu" is the approximation by tanh. @default "silu" */
  readonly activation?: "silu" | "gelu";
  /** q, k and v are one matrix (Phi-3). @default false */
  readonly fusedQkv?: boolean;
  /** Gate and up are one matrix (Phi-3, Granite 4). @default false */
  readonly fusedGateUp?: boolean;
  /** Queries have a gate for the result of attention per head (Qwen3.5). @default false */
  readonly gatedAttention?: boolean;
  /** Factor of the scores of attention (Gemma 3, Granite). @default headDim ** -0.5 */
  readonly attentionScale?: number;
  /** Factor of embeddings (Gemma 3, Granite). @default 1 */
  readonly embeddingScale?: number;
  /** Factor of the outputs of blocks (Granite). @default 1 */
  readonly residualScale?: number;
  /** Factor of logits (Granite). @default 1 */
  readonly logitScale?: number;
  readonly bosTokenId: number | null;
  readonly eosTokenIds: readonly number[];
}

/** Checks a parsed `config.json` (and `generation_config.json`, if there is one) and rejects unsupported settings by name. */
export function parseModelConfig(configJson: unknown, generationJson: unknown = {}): ModelConfig {
  const whole = new JsonFields(configJson, "config.json", unsupported);
  const generation = new JsonFields(generationJson, "generation_config.json", unsupported);
  const config = textConfigOf(whole, unsupported);
  refuseParts(config);
  const architecture = familyOf(config);
  const traits: FamilyTraits = families[architecture];
  const vocabSize = config.integer("vocab_size", 1);
  const contextLength = config.integer("max_position_embeddings", 1);
  const layers = config.integer("num_hidden_layers", 1);
  const { heads, kvHeads, headDim } = parseHeads(config, traits);
  const layerKinds = parseLayerKinds(config, layers, contextLength, traits.layers);
  const mixers = new Set(layerKinds?.map(mixerOf));
  const rope = parseRopeConfigs(config, headDim, traits.rope);
  checkHeadDim(config, headDim, rope, layerKinds);
  return {
    architecture,
    vocabSize,
    hiddenSize: config.integer("hidden_size", 1),
    intermediateSize: traits.feedForwardWidth?.(config) ?? config.integer("intermediate_size", 1),
    layers,
    heads,
    kvHeads,
    headDim,
    normEpsilon: config.positive(traits.normEpsilonField ?? "rms_norm_eps", traits.normEpsilon),
    ...rope,
    ...(layerKinds === undefined ? {} : { layerKinds }),
    ...parseMixers(config, mixers),
    contextLength,
    tiedEmbeddings: parseTied(config, traits),
    ...parseBiases(config, traits),
    ...parseActivation(config, traits, mixers),
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

function parseTied(config: JsonFields, traits: FamilyTraits): boolean {
  const field = "tie_word_embeddings";
  const { tiedField } = traits;
  const name = tiedField !== undefined && config.get(tiedField) !== undefined ? tiedField : field;
  return config.boolean(name, traits.tiedEmbeddings);
}

// Each of these changes the computation. Rejecting them here means that nothing has been allocated yet,
// and that no model loads only to produce nonsense.
function unsupported(message: string): EngineError {
  return new EngineError("unsupported_model", message);
}

// As in transformers: families differ in the fields that they read. Tensors of biases that a family
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
  { activation: { field, fallback } }: FamilyTraits,
  mixers: ReadonlySet<Mixer>,
): Pick<ModelConfig, "activation"> {
  const name = config.string(field, fallback);
  if (name === "silu") return {};
  // In transformers this also sets the activation of the convolution inside these mixers, which is SiLU here.
  if (mixers.has("deltaRule") || mixers.has("mamba")) {
    throw config.refuse(field, 'beside the delta rule and Mamba only "silu" is supported');
  }
  if (name === "gelu_pytorch_tanh") return { activation: "gelu" };
  throw config.refuse(field, 'the activations supported are "silu" and "gelu_pytorch_tanh"');
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
  return { heads, kvHeads, headDim: config.integer("head_dim", 1, fallback) };
}

/** Dimensions rotate in pairs: a head of an odd number cannot rotate as a whole. */
function checkHeadDim(
  config: JsonFields,
  headDim: number,
  ropes: RopeConfigs,
  layerKinds: readonly LayerKind[] = [{ window: null, rotation: "rope" }],
): void {
  if (headDim % 2 === 0) return;
  const rotatesWhole = layerKinds.some(
    ({ rotation }) => rotation !== null && ropes[rotation]?.rotaryDim === undefined,
  );
  if (rotatesWhole) throw config.refuse("head_dim", "rotation of whole heads needs an even number");
}

/** Ids of special tokens. Files of small models may name ones beyond their vocabulary, which never occur in texts. */
function parseTokenIds(fields: JsonFields, name: string, vocabSize: number): number[] {
  const value = fields.get(name) ?? [];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  const isId = (id: unknown): id is number =>
    typeof id === "number" && Number.isSafeInteger(id) && id >= 0;
  if (ids.every(isId)) return ids.filter((id) => id < vocabSize);
  throw fields.refuse(name, "must hold token ids, whole numbers of at least 0");
}
