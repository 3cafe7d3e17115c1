import type { JsonFields } from "../files/json-fields.js";
import type { LayerTraits } from "./layer-kinds.js";
import type { LayerTensorKey } from "./layer-tensors.js";
import type { ModelConfig } from "./model-config.js";
import type { RopeTraits } from "./rope-config.js";

/** A family of models. */
export type Architecture =
  | "llama"
  | "qwen2"
  | "qwen3"
  | "gemma3"
  | "mistral"
  | "olmo2"
  | "smollm3"
  | "granite"
  | "phi3"
  | "olmo3"
  | "ministral3"
  | "granite4"
  | "qwen3_5"
  | "lfm2";

/** Rules for reading the files of a family: defaults and fixed features. */
export interface FamilyTraits {
  /** The name in `architectures`. */
  readonly className: string;
  /** The name in `model_type`. */
  readonly modelType: string;
  /** Features that all its models have. */
  readonly features: Pick<
    ModelConfig,
    | "qkNorm"
    | "qkNormSpan"
    | "norms"
    | "normsPlusOne"
    | "fusedQkv"
    | "fusedGateUp"
    | "gatedAttention"
  >;
  readonly normEpsilon: number;
  /** The field with the epsilon of norms. @default "rms_norm_eps" */
  readonly normEpsilonField?: string;
  readonly tiedEmbeddings: boolean;
  /** A second name of `tie_word_embeddings`. */
  readonly tiedField?: string;
  /** Width of the feed-forward block, where it is not `intermediate_size`. */
  readonly feedForwardWidth?: (config: JsonFields) => number;
  /** Modules of a layer that have other names than Llama's, and that of the last norm. */
  readonly modules?: Readonly<Partial<Record<LayerTensorKey | "finalNorm", string>>>;
  /** Default size of heads; absent if it follows from the hidden size. */
  readonly headDim?: number;
  /** Biases of attention: none, those on q, k and v, or all if `attention_bias` is set. */
  readonly attentionBias: "none" | "qkv" | "flag";
  /** Whether `mlp_bias` is read. */
  readonly mlpBias: boolean;
  readonly activation: { readonly field: string; readonly fallback: string };
  /** Factors besides the usual one of attention: none, that of Gemma's queries, Granite's multipliers. */
  readonly scales: "none" | "query" | "multipliers";
  readonly rope: RopeTraits;
  readonly layers: LayerTraits;
}

/** Llama, of which the others are variations. */
const llama: FamilyTraits = {
  className: "LlamaForCausalLM",
  modelType: "llama",
  features: { qkNorm: false },
  normEpsilon: 1e-6,
  tiedEmbeddings: false,
  attentionBias: "flag",
  mlpBias: true,
  activation: { field: "hidden_act", fallback: "silu" },
  scales: "none",
  rope: { theta: 10_000, aliases: {} },
  layers: {
    windows: "none",
    defaultWindow: null,
    unrotatedLayers: false,
    ownRotation: false,
  },
};

/** The families that load. Defaults are those of transformers. */
export const families: Readonly<Record<Architecture, FamilyTraits>> = {
  llama,
  qwen2: {
    ...llama,
    className: "Qwen2ForCausalLM",
    modelType: "qwen2",
    attentionBias: "qkv",
    mlpBias: false,
    layers: { ...llama.layers, windows: "flags", defaultWindow: 4096 },
  },
  qwen3: {
    ...llama,
    className: "Qwen3ForCausalLM",
    modelType: "qwen3",
    features: { qkNorm: true },
    headDim: 128,
    mlpBias: false,
    layers: { ...llama.layers, windows: "flags", defaultWindow: 4096 },
  },
  gemma3: {
    ...llama,
    className: "Gemma3ForCausalLM",
    modelType: "gemma3_text",
    features: { qkNorm: true, norms: "around", normsPlusOne: true },
    headDim: 256,
    tiedEmbeddings: true,
    mlpBias: false,
    activation: { field: "hidden_activation", fallback: "gelu_pytorch_tanh" },
    scales: "query",
    rope: { ...llama.rope, theta: 1_000_000, localTheta: 10_000 },
    layers: { ...llama.layers, windows: "pattern", defaultWindow: 4096, ownRotation: true },
  },
  mistral: {
    ...llama,
    className: "MistralForCausalLM",
    modelType: "mistral",
    attentionBias: "none",
    mlpBias: false,
    layers: { ...llama.layers, windows: "all", defaultWindow: 4096 },
  },
  olmo2: {
    ...llama,
    className: "Olmo2ForCausalLM",
    modelType: "olmo2",
    features: { qkNorm: true, qkNormSpan: "all", norms: "after" },
    normEpsilon: 1e-5,
    mlpBias: false,
  },
  smollm3: {
    ...llama,
    className: "SmolLM3ForCausalLM",
    modelType: "smollm3",
    tiedEmbeddings: true,
    rope: { ...llama.rope, theta: 2_000_000 },
    layers: { ...llama.layers, windows: "unrotated", unrotatedLayers: true },
  },
  granite: {
    ...llama,
    className: "GraniteForCausalLM",
    modelType: "granite",
    scales: "multipliers",
  },
  phi3: {
    ...llama,
    className: "Phi3ForCausalLM",
    modelType: "phi3",
    features: { qkNorm: false, fusedQkv: true, fusedGateUp: true },
    normEpsilon: 1e-5,
    attentionBias: "none",
    mlpBias: false,
    // The first files used the names of others.
    rope: { ...llama.rope, partial: 1, aliases: { su: "longrope", yarn: "longrope" } },
    layers: { ...llama.layers, windows: "all" },
  },
  olmo3: {
    ...llama,
    className: "Olmo3ForCausalLM",
    modelType: "olmo3",
    features: { qkNorm: true, qkNormSpan: "all", norms: "after" },
    normEpsilon: 1e-5,
    mlpBias: false,
    // A scaling is that of the layers without a window.
    rope: { ...llama.rope, localTheta: "same" },
    layers: {
      ...llama.layers,
      windows: "pattern",
      interval: 4,
      defaultWindow: 4096,
      ownRotation: true,
    },
  },
  ministral3: {
    ...llama,
    className: "Ministral3ForCausalLM",
    modelType: "ministral3",
    headDim: 128,
    normEpsilon: 1e-5,
    attentionBias: "none",
    mlpBias: false,
    layers: { ...llama.layers, windows: "all" },
  },
  granite4: {
    ...llama,
    className: "GraniteMoeHybridForCausalLM",
    modelType: "granitemoehybrid",
    features: { qkNorm: false, fusedGateUp: true },
    mlpBias: false,
    scales: "multipliers",
    feedForwardWidth: (config) => config.integer("shared_intermediate_size", 1, 1024),
    modules: { gateUp: "shared_mlp.input_linear", down: "shared_mlp.output_linear" },
    layers: {
      ...llama.layers,
      hybrid: {
        mixer: "mamba",
        names: ["mamba", "linear_attention"],
        attentionNames: ["attention", "full_attention"],
        hasAttention: () => false,
        optionalRotation: true,
      },
    },
  },
  qwen3_5: {
    ...llama,
    className: "Qwen3_5ForCausalLM",
    modelType: "qwen3_5_text",
    features: { qkNorm: true, normsPlusOne: true, gatedAttention: true },
    headDim: 256,
    mlpBias: false,
    rope: { ...llama.rope, partial: 0.25 },
    layers: {
      ...llama.layers,
      hybrid: {
        mixer: "deltaRule",
        names: ["linear_attention"],
        attentionNames: ["full_attention"],
        hasAttention: (config, layer) =>
          (layer + 1) % config.integer("full_attention_interval", 1, 4) === 0,
      },
    },
  },
  lfm2: {
    ...llama,
    className: "Lfm2ForCausalLM",
    modelType: "lfm2",
    features: { qkNorm: true },
    normEpsilon: 1e-5,
    normEpsilonField: "norm_eps",
    tiedEmbeddings: true,
    tiedField: "tie_embedding",
    attentionBias: "none",
    mlpBias: false,
    rope: { ...llama.rope, theta: 1_000_000 },
    feedForwardWidth: lfm2Width,
    modules: {
      inputNorm: "operator_norm",
      middleNorm: "ffn_norm",
      qNorm: "self_attn.q_layernorm",
      kNorm: "self_attn.k_layernorm",
      o: "self_attn.out_proj",
      gate: "feed_forward.w1",
      up: "feed_forward.w3",
      down: "feed_forward.w2",
      finalNorm: "embedding_norm",
    },
    layers: {
      ...llama.layers,
      hybrid: {
        mixer: "convolution",
        names: ["conv"],
        attentionNames: ["full_attention"],
        hasAttention: (config, layer) => {
          const listed = config.get("full_attn_idxs");
          return Array.isArray(listed) ? listed.includes(layer) : true;
        },
      },
    },
  },
};

/** Two thirds of the file's value, rounded up to a multiple, unless the file states the final value. */
function lfm2Width(config: JsonFields): number {
  const field = config.get("block_ff_dim") === undefined ? "intermediate_size" : "block_ff_dim";
  const width = config.integer(field, 1, 12_288);
  if (!config.boolean("block_auto_adjust_ff_dim", true)) return width;
  const part = Math.floor((2 * width) / 3);
  if (config.json["block_ffn_dim_multiplier"] === null) return part;
  const multiple = config.integer("block_multiple_of", 1, 256);
  const scaled = Math.floor(config.positive("block_ffn_dim_multiplier", 1) * part);
  return multiple * Math.ceil(scaled / multiple);
}

const architectures = Object.keys(families).filter(isArchitecture);

/** The family that a file names; throws with a list of supported ones otherwise. */
export function familyOf(config: JsonFields): Architecture {
  const listed = config.get("architectures");
  const type = config.get("model_type");
  for (const architecture of architectures) {
    const { className, modelType } = families[architecture];
    const named = Array.isArray(listed) ? listed[0] === className : type === modelType;
    if (!named) continue;
    if (type === undefined || type === modelType) return architecture;
    throw config.refuse("model_type", `"architectures" says ${className}`);
  }
  const supported = architectures.map((name) => families[name].className).join(", ");
  throw config.refuse("architectures", `the supported ones are ${supported}`);
}

function isArchitecture(name: string): name is Architecture {
  return name in families;
}
