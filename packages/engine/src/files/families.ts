import type { JsonFields } from "@tinker-ts/hub/files";
import type { LayerTraits } from "./layer-kinds.js";
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
  | "phi3";

/** How the files of a family are read: what they leave to defaults, and what goes without saying. */
export interface FamilyTraits {
  /** The name in `architectures`. */
  readonly className: string;
  /** The name in `model_type`. */
  readonly modelType: string;
  /** Features that all its models have. */
  readonly features: Pick<
    ModelConfig,
    "qkNorm" | "qkNormSpan" | "norms" | "normsPlusOne" | "fusedProjections"
  >;
  readonly normEpsilon: number;
  readonly tiedEmbeddings: boolean;
  /** Size of heads when the file does not tell; absent where it follows from the hidden size. */
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
  rope: { theta: 10_000, partial: false, aliases: {} },
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
    features: { qkNorm: false, fusedProjections: true },
    normEpsilon: 1e-5,
    attentionBias: "none",
    mlpBias: false,
    // The first files called it by the names of others.
    rope: { ...llama.rope, partial: true, aliases: { su: "longrope", yarn: "longrope" } },
    layers: { ...llama.layers, windows: "all" },
  },
};

const architectures = Object.keys(families).filter(isArchitecture);

/** The family that a file names, or a refusal that lists those that load. */
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
