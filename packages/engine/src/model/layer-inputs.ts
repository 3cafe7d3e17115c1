import type { LayerKind, Rotation } from "@tinker-ts/hub/weights";
import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import {
  transpose,
  widened,
  type Int8Digits,
  type Int8Weight,
  type RotaryTables,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { ModelConfig } from "./model-config.js";
import { digitsOf, type Int8Precision } from "./precision.js";
import type { SiteLookup } from "./projectors.js";
import { rotaryWidth, tableNames } from "./rotary-tables.js";
import type { RotationInputs } from "./transformer.js";
import {
  forwardName,
  heldWeights,
  isHeldInInt8,
  outerWeightSpecs,
  scaleName,
  type LayerWeights,
  type WeightKey,
  type WeightSpec,
} from "./weights.js";

/** The weights that a layer's graph reads: norms and biases by key, linear layers by site. */
export interface LayerInputs {
  /** All weights, or those that are not held in 8 bits. */
  readonly weights: LayerWeights<Tensor>;
  readonly sites: SiteLookup;
}

/** Which weights of a layer are declared, and how. */
export interface DeclareOptions {
  /** @default all that layers of the kind have */
  readonly keys?: readonly WeightKey[];
  /** Prefix of the names of feeds, which are the keys. @default "" */
  readonly prefix?: string;
}

/** Declares weights of a layer of some kind. */
export function declareLayerWeights(
  graph: Graph,
  config: ModelConfig,
  kind: LayerKind,
  { keys, prefix = "" }: DeclareOptions = {},
  declare = declareWeight,
): LayerInputs {
  const weights: { [K in WeightKey]?: Tensor } = {};
  const matrices = new Map<string, Int8Weight>();
  for (const { key, shape } of heldWeights(config, kind)) {
    if (keys !== undefined && !keys.includes(key)) continue;
    const weight = declare(graph, config, `${prefix}${key}`, { key, shape });
    if ("values" in weight) matrices.set(key, weight);
    else weights[key] = weight;
  }
  const sites: SiteLookup = (site) => {
    if (site === "head") throw new Error("the head belongs to no layer");
    const weight = matrices.get(site) ?? weights[site];
    if (weight === undefined) throw new Error(`the graph has no weight for ${site}`);
    const rest = site === "mambaIn" ? weights.mambaTime : undefined;
    const bias = biasOf(weights, site);
    return rest === undefined ? { weight, bias } : { weight: [weight, rest], bias };
  };
  return { weights, sites };
}

function biasOf(weights: LayerWeights<Tensor>, site: string): Tensor | undefined {
  const biases: Readonly<Record<string, Tensor | undefined>> = weights;
  return biases[`${site}Bias`];
}

/** Declares a weight; a matrix in 8 bits where the model has such. */
export function declareWeight(
  graph: Graph,
  config: ModelConfig,
  name: string,
  spec: Pick<WeightSpec, "shape" | "key">,
): Tensor | Int8Weight {
  const { precision } = config;
  const { shape } = spec;
  const [outputs = 0] = shape;
  if (precision === undefined || !isHeldInInt8(config, spec)) return graph.input(name, shape);
  const format = formatOf(precision);
  const transposed = graph.input(name, shape, "int8");
  return {
    transposed,
    values: transpose(transposed, [1, 0]),
    scale: graph.input(scaleName(name), [outputs]),
    format,
    gradientFormat: format,
  };
}

/**
 * Declares weights of a layer for training, as `declareLayerWeights` does. Where values would take three digits, the
 * weights are widened to 32 bits instead: three int8 products take 1.5 times as long as one of 32 bits, and training has
 * enough rows to hide the conversion. The sampler's three digits are nearly as exact as floats.
 */
export function declareTrainedLayer(
  graph: Graph,
  config: ModelConfig,
  kind: LayerKind,
  options?: DeclareOptions,
): LayerInputs {
  return declareLayerWeights(graph, config, kind, options, (...declared) => {
    const weight = declareWeight(...declared);
    return "values" in weight && weight.format.digits === 3 ? widened(weight) : weight;
  });
}

/**
 * Declares the unembedding. Training multiplies few rows by it at a time, so it is also fed transposed.
 * A row of its gradient has one large entry, beside which one digit would lose the others.
 * Two are enough: a third moved the cosine of a whole gradient with that of 32 bits from 0.9996 to 0.9997.
 */
export function declareTrainedHead(graph: Graph, config: ModelConfig): Tensor | Int8Weight {
  const { shape } = outerWeightSpecs(config).embedding;
  const weight = declareWeight(graph, config, "head", { shape });
  if (!("values" in weight)) return weight;
  return {
    ...weight,
    values: graph.input(forwardName("head"), shape.toReversed(), "int8"),
    gradientFormat: { ...weight.gradientFormat, digits: 2 },
  };
}

function formatOf(precision: Int8Precision): Int8Digits {
  return { digits: digitsOf(precision), bits: precision.digitBits ?? 8 };
}

/** Declares positions of the tokens and the angles that layers of some kinds rotate by. */
export function declareRotation(
  graph: Graph,
  config: ModelConfig,
  kinds: readonly LayerKind[],
  tokens: Dim,
): RotationInputs {
  const positions = graph.input("positions", [tokens, 1], "int64");
  const tables: Partial<Record<Rotation, RotaryTables>> = {};
  const growth: Partial<Record<Rotation, Tensor>> = {};
  for (const { rotation } of kinds) {
    if (rotation === null || tables[rotation] !== undefined) continue;
    const shape = [Dim.symbol("positions"), rotaryWidth(config, rotation)];
    const names = tableNames(rotation);
    tables[rotation] = { cos: graph.input(names.cos, shape), sin: graph.input(names.sin, shape) };
    if (config[rotation]?.queryGrowth === undefined) continue;
    growth[rotation] = graph.input(names.growth, [Dim.symbol("positions"), 1]);
  }
  return { positions, tables, growth };
}
