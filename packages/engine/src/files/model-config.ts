import { JsonFields } from "@tinker-ts/hub/files";
import { EngineError } from "../errors.js";
import { parseRopeConfig, type RopeConfig } from "./rope-config.js";

export type { RopeConfig } from "./rope-config.js";

/** What the engine needs to know of a model; parsed from a Hugging Face `config.json`. */
export interface ModelConfig {
  readonly architecture: "llama" | "qwen2" | "qwen3";
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly normEpsilon: number;
  readonly rope: RopeConfig;
  /** Longest sequence the model was made for, in tokens. */
  readonly contextLength: number;
  /** The unembedding is the embedding matrix itself. */
  readonly tiedEmbeddings: boolean;
  /** Biases on the q, k and v projections (Qwen2, and where `attention_bias` is set). */
  readonly qkvBias: boolean;
  /** A bias on the output projection of attention (where `attention_bias` is set). */
  readonly outputBias: boolean;
  /** Biases on the feed-forward projections (Llama with `mlp_bias`). */
  readonly mlpBias: boolean;
  /** RMS norm on each query and key head (Qwen3). */
  readonly qkNorm: boolean;
  readonly bosTokenId: number | null;
  readonly eosTokenIds: readonly number[];
}

/** Architectures that load, as `config.json` spells them. */
const supportedArchitectures: ReadonlyMap<string, ModelConfig["architecture"]> = new Map([
  ["LlamaForCausalLM", "llama"],
  ["Qwen2ForCausalLM", "qwen2"],
  ["Qwen3ForCausalLM", "qwen3"],
]);

/** Checks a parsed `config.json` (and `generation_config.json`, if there is one) and refuses by name what the engine cannot compute. */
export function parseModelConfig(configJson: unknown, generationJson: unknown = {}): ModelConfig {
  const config = new JsonFields(configJson, "config.json", unsupported);
  const generation = new JsonFields(generationJson, "generation_config.json", unsupported);
  refuseUnsupportedParts(config);
  const architecture = parseArchitecture(config);
  const vocabSize = config.integer("vocab_size", 1);
  const contextLength = config.integer("max_position_embeddings", 1);
  const layers = config.integer("num_hidden_layers", 1);
  refuseSlidingWindow(config, layers, contextLength);
  return {
    architecture,
    vocabSize,
    hiddenSize: config.integer("hidden_size", 1),
    intermediateSize: config.integer("intermediate_size", 1),
    layers,
    ...parseHeads(config, architecture),
    normEpsilon: config.positive("rms_norm_eps", 1e-6),
    rope: parseRopeConfig(config),
    contextLength,
    tiedEmbeddings: config.boolean("tie_word_embeddings", false),
    ...parseBiases(config, architecture),
    qkNorm: architecture === "qwen3",
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
  ];
  for (const [field, meaning] of present) {
    if (config.get(field) !== undefined) throw config.refuse(field, meaning);
  }
  for (const field of ["num_experts", "num_local_experts", "n_routed_experts"]) {
    if (config.integer(field, 0, 0) > 0) {
      throw config.refuse(field, "mixtures of experts are not supported");
    }
  }
  if (config.string("hidden_act", "silu") !== "silu") {
    throw config.refuse("hidden_act", 'the only activation supported is "silu"');
  }
}

function parseArchitecture(config: JsonFields): ModelConfig["architecture"] {
  const listed = config.get("architectures");
  const family = config.get("model_type");
  for (const [name, architecture] of supportedArchitectures) {
    const named = Array.isArray(listed) ? listed[0] === name : family === architecture;
    if (!named) continue;
    if (family === undefined || family === architecture) return architecture;
    throw config.refuse("model_type", `"architectures" says ${name}`);
  }
  const supported = [...supportedArchitectures.keys()].join(", ");
  throw config.refuse("architectures", `the supported ones are ${supported}`);
}

// As transformers has it: Qwen2's biases are fixed, and only Llama reads `mlp_bias`. Tensors of biases
// that a family does not have are refused as unexpected when the weights are opened.
function parseBiases(
  config: JsonFields,
  architecture: ModelConfig["architecture"],
): Pick<ModelConfig, "qkvBias" | "outputBias" | "mlpBias"> {
  const attentionBias = config.boolean("attention_bias", false);
  const mlpBias = config.boolean("mlp_bias", false);
  return {
    qkvBias: attentionBias || architecture === "qwen2",
    outputBias: attentionBias && architecture !== "qwen2",
    mlpBias: mlpBias && architecture === "llama",
  };
}

function parseHeads(
  config: JsonFields,
  architecture: ModelConfig["architecture"],
): Pick<ModelConfig, "heads" | "kvHeads" | "headDim"> {
  const heads = config.integer("num_attention_heads", 1);
  const kvHeads = config.integer("num_key_value_heads", 1, heads);
  if (heads % kvHeads !== 0) {
    throw config.refuse("num_key_value_heads", `must divide num_attention_heads (${heads})`);
  }
  const hiddenSize = config.integer("hidden_size", 1);
  const headDim = config.integer("head_dim", 1, defaultHeadDim(architecture, hiddenSize, heads));
  if (headDim % 2 !== 0) throw config.refuse("head_dim", "rotation needs an even number");
  return { heads, kvHeads, headDim };
}

// Qwen3 fixes its heads at 128 whatever the hidden size; the others divide the hidden size.
function defaultHeadDim(
  architecture: ModelConfig["architecture"],
  hiddenSize: number,
  heads: number,
): number {
  return architecture === "qwen3" ? 128 : hiddenSize / heads;
}

// Qwen configurations carry a window even where no layer uses it. It is refused only if a sequence
// that fits the context could reach beyond it. The defaults are those of transformers.
function refuseSlidingWindow(config: JsonFields, layers: number, contextLength: number): void {
  const layerTypes = config.get("layer_types");
  const field = Array.isArray(layerTypes) ? "layer_types" : "use_sliding_window";
  const full = `only full attention over the whole context (${contextLength} tokens) is supported`;
  const types = new Set<unknown>(Array.isArray(layerTypes) ? layerTypes : []);
  const windowed = Array.isArray(layerTypes)
    ? types.delete("sliding_attention")
    : config.boolean("use_sliding_window", false) &&
      config.integer("max_window_layers", 0, 28) < layers;
  types.delete("full_attention");
  if (types.size > 0) throw config.refuse(field, full);
  // Unlike an absent window, which means the default, null means none.
  if (!windowed || config.json["sliding_window"] === null) return;
  if (config.integer("sliding_window", 1, 4096) < contextLength) throw config.refuse(field, full);
}

function parseTokenIds(fields: JsonFields, name: string, vocabSize: number): number[] {
  const value = fields.get(name) ?? [];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  const isId = (id: unknown): id is number =>
    typeof id === "number" && Number.isSafeInteger(id) && id >= 0 && id < vocabSize;
  if (ids.every(isId)) return ids;
  throw fields.refuse(name, `must hold token ids from 0 to ${vocabSize - 1}`);
}
