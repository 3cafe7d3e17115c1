import { isObject } from "../files/json.js";
import type { JsonFields } from "../files/json-fields.js";

/** The mixer of a layer. */
export type Mixer = "attention" | "deltaRule" | "convolution" | "mamba";

/** Sizes of the gated delta rule (Qwen3.5). */
export interface DeltaRuleConfig {
  readonly keyHeads: number;
  /** A multiple of `keyHeads`: neighbouring heads of values share one of keys. */
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Size of the convolution before the rule, in tokens. */
  readonly kernel: number;
}

/** A short convolution between two gates (LFM2). */
export interface ConvolutionConfig {
  readonly kernel: number;
  /** Biases of the convolution and of both projections. */
  readonly bias: boolean;
}

/** Sizes of Mamba 2 (Granite 4 H). */
export interface MambaConfig {
  readonly heads: number;
  readonly headDim: number;
  /** Groups of heads that share their inputs and outputs of the state; divides `heads`. */
  readonly groups: number;
  readonly stateSize: number;
  readonly kernel: number;
  readonly convBias: boolean;
  readonly projectionBias: boolean;
  /** Bounds of the time step. */
  readonly timeStep: readonly [least: number, most: number];
}

/** Settings of the mixers besides attention that a model's layers have. */
export interface MixerConfigs {
  readonly deltaRule?: DeltaRuleConfig;
  readonly convolution?: ConvolutionConfig;
  readonly mamba?: MambaConfig;
}

/** Reads the settings of the mixers that some layer has. */
export function parseMixers(config: JsonFields, mixers: ReadonlySet<Mixer>): MixerConfigs {
  return {
    ...(mixers.has("deltaRule") ? { deltaRule: parseDeltaRule(config) } : {}),
    ...(mixers.has("convolution") ? { convolution: parseConvolution(config) } : {}),
    ...(mixers.has("mamba") ? { mamba: parseMamba(config) } : {}),
  };
}

function parseDeltaRule(config: JsonFields): DeltaRuleConfig {
  const keyHeads = config.integer("linear_num_key_heads", 1, 16);
  const valueHeads = config.integer("linear_num_value_heads", 1, 32);
  if (valueHeads % keyHeads !== 0) {
    throw config.refuse(
      "linear_num_value_heads",
      `must be a multiple of the ${keyHeads} key heads`,
    );
  }
  return {
    keyHeads,
    valueHeads,
    keyDim: config.integer("linear_key_head_dim", 1, 128),
    valueDim: config.integer("linear_value_head_dim", 1, 128),
    kernel: config.integer("linear_conv_kernel_dim", 2, 4),
  };
}

function parseConvolution(config: JsonFields): ConvolutionConfig {
  return {
    kernel: config.integer("conv_L_cache", 2, 3),
    bias: config.boolean("conv_bias", false),
  };
}

function parseMamba(config: JsonFields): MambaConfig {
  const width = config.integer("mamba_expand", 1, 2) * config.integer("hidden_size", 1);
  const heads = config.integer("mamba_n_heads", 1, 128);
  const groups = config.integer("mamba_n_groups", 1, 1);
  const named = config.get("mamba_d_head");
  const headDim =
    named === undefined || named === "auto" ? width / heads : config.integer("mamba_d_head", 1);
  if (heads * headDim !== width) {
    throw config.refuse(
      "mamba_n_heads",
      `heads of ${headDim} do not make up the width of ${width}`,
    );
  }
  if (heads % groups !== 0) throw config.refuse("mamba_n_groups", `must divide ${heads} heads`);
  return {
    heads,
    headDim,
    groups,
    stateSize: config.integer("mamba_d_state", 1, 256),
    kernel: config.integer("mamba_d_conv", 2, 4),
    convBias: config.boolean("mamba_conv_bias", true),
    projectionBias: config.boolean("mamba_proj_bias", false),
    timeStep: parseTimeStep(config),
  };
}

/** The bounds in JSON: infinity is `Infinity`, which is not JSON, or an object that names it. */
function parseTimeStep(config: JsonFields): readonly [number, number] {
  const field = "time_step_limit";
  const list = config.get(field) ?? [0, Infinity];
  const numbers = Array.isArray(list) ? list.map(numberIn) : [];
  const [least, most] = numbers;
  if (numbers.length === 2 && least !== undefined && most !== undefined && least < most) {
    return [least, most];
  }
  throw config.refuse(field, "must be two numbers, the smaller one first");
}

function numberIn(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  const text = isObject(value) ? value["__float__"] : value;
  if (text === "Infinity" || text === "inf") return Infinity;
  return undefined;
}
