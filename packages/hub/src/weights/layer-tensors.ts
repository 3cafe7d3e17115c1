import { families } from "./families.js";
import { mixerOf, type LayerKind } from "./layer-kinds.js";
import type { ModelConfig } from "./model-config.js";

/** The modules of a layer by short names; each family has some of them, and some under other names. */
const modules = {
  inputNorm: "input_layernorm",
  q: "self_attn.q_proj",
  k: "self_attn.k_proj",
  v: "self_attn.v_proj",
  qkv: "self_attn.qkv_proj",
  qNorm: "self_attn.q_norm",
  kNorm: "self_attn.k_norm",
  o: "self_attn.o_proj",
  deltaQ: "linear_attn.in_proj_q",
  deltaK: "linear_attn.in_proj_k",
  deltaV: "linear_attn.in_proj_v",
  deltaZ: "linear_attn.in_proj_z",
  deltaB: "linear_attn.in_proj_b",
  deltaA: "linear_attn.in_proj_a",
  deltaConv: "linear_attn.conv1d",
  deltaStep: "linear_attn.dt_bias",
  deltaDecay: "linear_attn.A_log",
  deltaNorm: "linear_attn.norm",
  deltaOut: "linear_attn.out_proj",
  convIn: "conv.in_proj",
  conv: "conv.conv",
  convOut: "conv.out_proj",
  mambaIn: "mamba.in_proj",
  mambaConv: "mamba.conv1d",
  mambaStep: "mamba.dt_bias",
  mambaDecay: "mamba.A_log",
  mambaSkip: "mamba.D",
  mambaNorm: "mamba.norm",
  mambaOut: "mamba.out_proj",
  attendedNorm: "post_attention_layernorm",
  middleNorm: "post_attention_layernorm",
  gate: "mlp.gate_proj",
  up: "mlp.up_proj",
  gateUp: "mlp.gate_up_proj",
  down: "mlp.down_proj",
  outputNorm: "post_feedforward_layernorm",
} as const;

type Module = keyof typeof modules;

/** Modules that can have a bias. */
type Biased =
  | "q"
  | "k"
  | "v"
  | "qkv"
  | "o"
  | "convIn"
  | "conv"
  | "convOut"
  | "mambaIn"
  | "mambaConv"
  | "mambaOut"
  | "gate"
  | "up"
  | "gateUp"
  | "down";

/** Short name of a tensor of a layer. */
export type LayerTensorKey = Module | `${Biased}Bias`;

/** A tensor of a layer. */
export interface LayerTensor {
  readonly key: LayerTensorKey;
  /** The suffix of its stored name after `model.layers.N.`. */
  readonly name: string;
  readonly shape: readonly number[];
  /** The suffix of its module's name after `model.layers.N.`, as in adapters. */
  readonly module: string;
  /** The first row, if it is a part of the rows of a stored tensor. */
  readonly firstRow?: number;
}

/** These are stored under the name of their module, without `.weight`. */
const bare: ReadonlySet<Module> = new Set<Module>([
  "deltaStep",
  "deltaDecay",
  "mambaStep",
  "mambaDecay",
  "mambaSkip",
]);

/** Matrices that are joined in the files and separate here, because each part has an adapter of its own. */
const joined: Readonly<Partial<Record<Module, string>>> = {
  deltaQ: "linear_attn.in_proj_qkv",
  deltaK: "linear_attn.in_proj_qkv",
  deltaV: "linear_attn.in_proj_qkv",
};

type Shapes = readonly (readonly [LayerTensorKey, readonly number[]] | undefined)[];

/** The tensors of a layer of some kind, in order of use. */
export function layerTensors(config: ModelConfig, kind: LayerKind): readonly LayerTensor[] {
  const { hiddenSize, norms = "before" } = config;
  const norm = (key: "inputNorm" | "attendedNorm" | "middleNorm" | "outputNorm"): Shapes => [
    [key, [hiddenSize]],
  ];
  const shapes: Shapes = [
    ...(norms === "after" ? [] : norm("inputNorm")),
    ...mixerShapes(config, kind),
    ...(norms === "before" ? [] : norm("attendedNorm")),
    ...(norms === "after" ? [] : norm("middleNorm")),
    ...feedForwardShapes(config),
    ...(norms === "before" ? [] : norm("outputNorm")),
  ];
  const rows = new Map<string, number>();
  return shapes
    .filter((entry) => entry !== undefined)
    .map(([key, shape]): LayerTensor => {
      const module = isModule(key) ? key : moduleOfBias(key);
      const path = pathOf(config, module);
      const stored = joined[module];
      if (stored !== undefined) {
        const firstRow = rows.get(stored) ?? 0;
        rows.set(stored, firstRow + (shape[0] ?? 0));
        return { key, name: `${stored}.weight`, shape, module: path, firstRow };
      }
      const ending = isModule(key) ? (bare.has(module) ? "" : ".weight") : ".bias";
      return { key, name: `${path}${ending}`, shape, module: path };
    });
}

/** The name of the last norm's scale, without `model.` and `.weight`. */
export function finalNormModule({ architecture }: ModelConfig): string {
  return families[architecture].modules?.finalNorm ?? "norm";
}

function pathOf({ architecture, norms }: ModelConfig, module: Module): string {
  const own = families[architecture].modules?.[module];
  if (own !== undefined) return own;
  // With norms around a block, the name means the norm after attention.
  return module === "middleNorm" && norms === "around"
    ? "pre_feedforward_layernorm"
    : modules[module];
}

function mixerShapes(config: ModelConfig, kind: LayerKind): Shapes {
  switch (mixerOf(kind)) {
    case "attention":
      return attentionShapes(config);
    case "deltaRule":
      return deltaRuleShapes(config);
    case "convolution":
      return convolutionShapes(config);
    case "mamba":
      return mambaShapes(config);
  }
}

function attentionShapes(config: ModelConfig): Shapes {
  const { hiddenSize, headDim, qkvBias, fusedQkv = false } = config;
  const attended = config.heads * headDim;
  const queries = config.gatedAttention === true ? 2 * attended : attended;
  const keys = config.kvHeads * headDim;
  const wholeNorm = config.qkNormSpan === "all";
  return [
    fusedQkv ? ["qkv", [queries + 2 * keys, hiddenSize]] : undefined,
    fusedQkv ? undefined : ["q", [queries, hiddenSize]],
    fusedQkv ? undefined : ["k", [keys, hiddenSize]],
    fusedQkv ? undefined : ["v", [keys, hiddenSize]],
    qkvBias && fusedQkv ? ["qkvBias", [queries + 2 * keys]] : undefined,
    qkvBias && !fusedQkv ? ["qBias", [queries]] : undefined,
    qkvBias && !fusedQkv ? ["kBias", [keys]] : undefined,
    qkvBias && !fusedQkv ? ["vBias", [keys]] : undefined,
    config.qkNorm ? ["qNorm", [wholeNorm ? attended : headDim]] : undefined,
    config.qkNorm ? ["kNorm", [wholeNorm ? keys : headDim]] : undefined,
    ["o", [hiddenSize, attended]],
    config.outputBias ? ["oBias", [hiddenSize]] : undefined,
  ];
}

function deltaRuleShapes({ hiddenSize, deltaRule }: ModelConfig): Shapes {
  if (deltaRule === undefined) throw new Error("the configuration has no delta rule");
  const { keyHeads, valueHeads, keyDim, valueDim, kernel } = deltaRule;
  const [keys, values] = [keyHeads * keyDim, valueHeads * valueDim];
  return [
    ["deltaQ", [keys, hiddenSize]],
    ["deltaK", [keys, hiddenSize]],
    ["deltaV", [values, hiddenSize]],
    ["deltaZ", [values, hiddenSize]],
    ["deltaB", [valueHeads, hiddenSize]],
    ["deltaA", [valueHeads, hiddenSize]],
    ["deltaConv", [2 * keys + values, 1, kernel]],
    ["deltaStep", [valueHeads]],
    ["deltaDecay", [valueHeads]],
    ["deltaNorm", [valueDim]],
    ["deltaOut", [hiddenSize, values]],
  ];
}

function convolutionShapes({ hiddenSize, convolution }: ModelConfig): Shapes {
  if (convolution === undefined) throw new Error("the configuration has no convolution");
  const { kernel, bias } = convolution;
  return [
    ["convIn", [3 * hiddenSize, hiddenSize]],
    bias ? ["convInBias", [3 * hiddenSize]] : undefined,
    ["conv", [hiddenSize, 1, kernel]],
    bias ? ["convBias", [hiddenSize]] : undefined,
    ["convOut", [hiddenSize, hiddenSize]],
    bias ? ["convOutBias", [hiddenSize]] : undefined,
  ];
}

function mambaShapes({ hiddenSize, mamba }: ModelConfig): Shapes {
  if (mamba === undefined) throw new Error("the configuration has no Mamba");
  const { heads, headDim, groups, stateSize, kernel, convBias, projectionBias } = mamba;
  const width = heads * headDim;
  const channels = width + 2 * groups * stateSize;
  return [
    ["mambaIn", [width + channels + heads, hiddenSize]],
    projectionBias ? ["mambaInBias", [width + channels + heads]] : undefined,
    ["mambaConv", [channels, 1, kernel]],
    convBias ? ["mambaConvBias", [channels]] : undefined,
    ["mambaStep", [heads]],
    ["mambaDecay", [heads]],
    ["mambaSkip", [heads]],
    ["mambaNorm", [width]],
    ["mambaOut", [hiddenSize, width]],
    projectionBias ? ["mambaOutBias", [hiddenSize]] : undefined,
  ];
}

function feedForwardShapes(config: ModelConfig): Shapes {
  const { hiddenSize, intermediateSize: width, mlpBias, fusedGateUp = false } = config;
  return [
    fusedGateUp ? ["gateUp", [2 * width, hiddenSize]] : undefined,
    fusedGateUp ? undefined : ["gate", [width, hiddenSize]],
    fusedGateUp ? undefined : ["up", [width, hiddenSize]],
    ["down", [hiddenSize, width]],
    mlpBias && fusedGateUp ? ["gateUpBias", [2 * width]] : undefined,
    mlpBias && !fusedGateUp ? ["gateBias", [width]] : undefined,
    mlpBias && !fusedGateUp ? ["upBias", [width]] : undefined,
    mlpBias ? ["downBias", [hiddenSize]] : undefined,
  ];
}

function isModule(key: LayerTensorKey): key is Module {
  return key in modules;
}

function moduleOfBias(key: LayerTensorKey): Module {
  const module = key.slice(0, -"Bias".length);
  if (isModuleName(module)) return module;
  throw new Error(`${key} is no bias`);
}

function isModuleName(name: string): name is Module {
  return name in modules;
}
