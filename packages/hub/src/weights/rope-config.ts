import { isObject } from "../files/json.js";
import { type JsonFields } from "../files/json-fields.js";

/** Scaling of rotary frequencies for contexts beyond the original one. */
export type RopeScaling =
  | {
      /** Low frequencies are stretched, as Llama 3.1 and later do. */
      readonly kind: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalContextLength: number;
    }
  | {
      /** All frequencies are divided by one factor. */
      readonly kind: "linear";
      readonly factor: number;
    }
  | {
      /** High frequencies are kept, low ones divided by a factor, those between blended by a ramp. */
      readonly kind: "yarn";
      readonly factor: number;
      /** Frequencies with at least this many turns within the original context are kept. */
      readonly betaFast: number;
      /** Frequencies with at most this many turns are divided. */
      readonly betaSlow: number;
      readonly originalContextLength: number;
      /** The ramp begins and ends at whole pairs of dimensions. */
      readonly truncate: boolean;
      /** Factor of cosines and sines. */
      readonly attentionFactor: number;
    }
  | {
      /** Each frequency is divided by a factor of its own, the set depends on the sequence's length. */
      readonly kind: "longrope";
      /** For sequences of up to the original context's length. */
      readonly shortFactors: readonly number[];
      /** For longer ones. */
      readonly longFactors: readonly number[];
      readonly originalContextLength: number;
      /** Factor of cosines and sines. */
      readonly attentionFactor: number;
    };

/** Factor of queries that grows with their position: 1 + weight * ln(1 + floor(position / length)). */
export interface QueryGrowth {
  readonly weight: number;
  readonly length: number;
}

/** Rotary position embedding. */
export interface RopeConfig {
  readonly theta: number;
  readonly scaling: RopeScaling | null;
  /** Leading dimensions of each head that rotate; an odd number is rounded up to even. @default all */
  readonly rotaryDim?: number;
  /** @default queries do not grow */
  readonly queryGrowth?: QueryGrowth;
}

/** Defaults of a family, and fields that only it supports. */
export interface RopeTraits {
  readonly theta: number;
  /** Base of layers with a window, if they have their own rotation; "same" for that of the others. */
  readonly localTheta?: number | "same";
  /** The part of each head that rotates, if the file has none; absent if it must be all. */
  readonly partial?: number;
  /** Kinds of scaling under other names. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** The rotations of a model. */
export interface RopeConfigs {
  readonly rope: RopeConfig;
  readonly localRope?: RopeConfig;
}

/**
 * Reads the rotary embedding in both spellings: `rope_theta` with `rope_scaling` beside it, as
 * transformers wrote until version 4, or everything inside `rope_parameters`, as it does since 5. Where
 * layers with a window have their own rotation, it was `rope_local_base_freq` and is
 * `rope_parameters` by kind of layer; an old scaling is that of the other layers.
 */
export function parseRopeConfigs(
  config: JsonFields,
  headDim: number,
  traits: RopeTraits,
): RopeConfigs {
  const old = config.nested("rope_scaling");
  const current = config.nested("rope_parameters");
  const theta = config.positive("rope_theta", traits.theta);
  const parse = (fields: JsonFields | undefined, base: number): RopeConfig =>
    parseRope(config, fields, base, headDim, traits);
  if (traits.localTheta === undefined) {
    const fields = old ?? current;
    const nested = Object.keys(fields?.json ?? {}).find((name) => isObject(fields?.get(name)));
    if (nested !== undefined) throw fields?.refuse(nested, "all layers must share one rotation");
    return { rope: parse(fields, theta) };
  }
  const otherTheta = traits.localTheta === "same" ? theta : traits.localTheta;
  const localTheta = config.positive("rope_local_base_freq", otherTheta);
  return {
    rope: parse(old ?? current?.nested("full_attention"), theta),
    localRope: parse(current?.nested("sliding_attention"), localTheta),
  };
}

function parseRope(
  config: JsonFields,
  fields: JsonFields | undefined,
  theta: number,
  headDim: number,
  traits: RopeTraits,
): RopeConfig {
  const rotaryDim = parseRotaryDim(config, fields, headDim, traits);
  return {
    theta: fields?.positive("rope_theta", theta) ?? theta,
    scaling: fields === undefined ? null : parseScaling(config, fields, rotaryDim, traits),
    ...(rotaryDim === headDim ? {} : { rotaryDim }),
    ...parseQueryGrowth(fields),
  };
}

function parseQueryGrowth(fields: JsonFields | undefined): Pick<RopeConfig, "queryGrowth"> {
  const field = "llama_4_scaling_beta";
  if (fields?.get(field) === undefined || fields.get(field) === 0) return {};
  const length = fields.integer("original_max_position_embeddings", 1);
  return { queryGrowth: { weight: fields.positive(field), length } };
}

function parseRotaryDim(
  config: JsonFields,
  rope: JsonFields | undefined,
  headDim: number,
  { partial }: RopeTraits,
): number {
  const [named] = [rope, config].filter((one) => one?.get("partial_rotary_factor") !== undefined);
  const fields = named ?? config;
  const fraction = fields.positive("partial_rotary_factor", partial ?? 1);
  if (fraction === 1) return headDim;
  if (partial === undefined) {
    throw fields.refuse(
      "partial_rotary_factor",
      "only 1 (all of each head rotates) is supported in this family",
    );
  }
  const rotaryDim = Math.floor(headDim * fraction);
  if (rotaryDim >= 1 && rotaryDim <= headDim) return rotaryDim;
  throw fields.refuse("partial_rotary_factor", `heads have ${headDim} dimensions to rotate`);
}

function parseScaling(
  config: JsonFields,
  fields: JsonFields,
  rotaryDim: number,
  { aliases }: RopeTraits,
): RopeScaling | null {
  const field = fields.get("rope_type") === undefined ? "type" : "rope_type";
  const named = fields.string(field, "default");
  switch (aliases[named] ?? named) {
    case "default":
      return null;
    case "linear":
      return { kind: "linear", factor: fields.positive("factor") };
    case "llama3":
      return parseLlama3(fields);
    case "yarn":
      return parseYarn(config, fields);
    case "longrope":
      return parseLongrope(config, fields, rotaryDim);
    default:
      throw fields.refuse(
        field,
        'only "default", "linear", "llama3", "yarn" and "longrope" position scaling are supported',
      );
  }
}

function parseLlama3(fields: JsonFields): RopeScaling {
  const lowFrequencyFactor = fields.positive("low_freq_factor");
  const highFrequencyFactor = fields.positive("high_freq_factor");
  if (highFrequencyFactor <= lowFrequencyFactor) {
    throw fields.refuse("high_freq_factor", `must exceed low_freq_factor (${lowFrequencyFactor})`);
  }
  return {
    kind: "llama3",
    factor: fields.positive("factor"),
    lowFrequencyFactor,
    highFrequencyFactor,
    originalContextLength: fields.integer("original_max_position_embeddings", 1),
  };
}

function parseYarn(config: JsonFields, fields: JsonFields): RopeScaling {
  const contextLength = config.integer("max_position_embeddings", 1);
  const originalContextLength = fields.integer(
    "original_max_position_embeddings",
    1,
    contextLength,
  );
  const factor = fields.positive("factor", contextLength / originalContextLength);
  const betaFast = fields.positive("beta_fast", 32);
  const betaSlow = fields.positive("beta_slow", 1);
  if (betaFast < betaSlow) {
    throw fields.refuse("beta_fast", `must be at least beta_slow (${betaSlow})`);
  }
  const growth = (weight: number): number =>
    factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1;
  // Zero means absent, as in transformers.
  const weights = [fields.get("mscale"), fields.get("mscale_all_dim")];
  const [own, all] = weights.map((weight) => (typeof weight === "number" ? weight : 0));
  const fallback = own && all ? growth(own) / growth(all) : growth(1);
  return {
    kind: "yarn",
    factor,
    betaFast,
    betaSlow,
    originalContextLength,
    truncate: fields.boolean("truncate", true),
    attentionFactor: fields.positive("attention_factor", fallback),
  };
}

// In the files of Phi the original length is beside the rotation, and takes precedence over one inside.
function parseLongrope(config: JsonFields, fields: JsonFields, rotaryDim: number): RopeScaling {
  const contextLength = config.integer("max_position_embeddings", 1);
  const length = "original_max_position_embeddings";
  const holder = config.get(length) === undefined ? fields : config;
  const originalContextLength = holder.integer(length, 1, contextLength);
  const factor = fields.positive("factor", contextLength / originalContextLength);
  const stretched = Math.sqrt(1 + Math.log(factor) / Math.log(originalContextLength));
  return {
    kind: "longrope",
    shortFactors: parseFactors(fields, "short_factor", Math.ceil(rotaryDim / 2)),
    longFactors: parseFactors(fields, "long_factor", Math.ceil(rotaryDim / 2)),
    originalContextLength,
    attentionFactor: fields.positive("attention_factor", factor <= 1 ? 1 : stretched),
  };
}

function parseFactors(fields: JsonFields, name: string, length: number): readonly number[] {
  const list = fields.get(name);
  const isFactor = (value: unknown): value is number =>
    typeof value === "number" && Number.isFinite(value) && value > 0;
  if (Array.isArray(list) && list.length === length && list.every(isFactor)) return list;
  throw fields.refuse(name, `must be a list of ${length} numbers greater than zero`);
}
