import type { LayerKind, ModelConfig, Rotation } from "../files/model-config.js";
import { digitsOf, type Int8Precision } from "../files/precision.js";
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
import type { SiteLookup } from "./projectors.js";
import { rotaryWidth, tableNames } from "./rotary-tables.js";
import type { RotationInputs } from "./transformer.js";
import {
  forwardName,
  isHeldInInt8,
  layerWeightSpecs,
  outerWeightSpecs,
  scaleName,
  type LayerWeightKey,
  type LayerWeights,
} from "./weights.js";

/** What a layer's graph reads of the model: norms and biases by key, linear layers by site. */
export interface LayerInputs {
  /** All weights, or those that are not held in 8 bits. */
  readonly weights: LayerWeights<Tensor>;
  readonly sites: SiteLookup;
}

/** Declares weights of a layer; feeds have the names of their keys, after a prefix. */
export function declareLayerWeights(
  graph: Graph,
  config: ModelConfig,
  keys: readonly LayerWeightKey[],
  prefix = "",
  declare = declareWeight,
): LayerInputs {
  const specs = layerWeightSpecs(config, 0);
  const weights: { [K in LayerWeightKey]?: Tensor } = {};
  const matrices = new Map<string, Int8Weight>();
  for (const key of keys) {
    const spec = specs[key];
    if (spec === undefined) continue;
    const weight = declare(graph, config, `${prefix}${key}`, spec.shape);
    if ("values" in weight) matrices.set(key, weight);
    else weights[key] = weight;
  }
  const sites: SiteLookup = (site) => {
    if (site === "head") throw new Error("the head belongs to no layer");
    const weight = matrices.get(site) ?? weights[site];
    if (weight === undefined) throw new Error(`the graph has no weight for ${site}`);
    return { weight, bias: weights[`${site}Bias`] };
  };
  return { weights, sites };
}

/** Declares a weight; a matrix in 8 bits where the model has such. */
export function declareWeight(
  graph: Graph,
  config: ModelConfig,
  name: string,
  shape: readonly number[],
): Tensor | Int8Weight {
  const { precision } = config;
  const [outputs = 0] = shape;
  if (precision === undefined || !isHeldInInt8(config, shape)) return graph.input(name, shape);
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
 * weights are made wide instead: three products of 8 bits take half as long again as one of 32, and training has rows
 * enough for weights to be made wide in passing. The sampler's three digits are nearly as fine as floats.
 */
export function declareTrainedLayer(
  graph: Graph,
  config: ModelConfig,
  keys: readonly LayerWeightKey[],
  prefix?: string,
): LayerInputs {
  return declareLayerWeights(graph, config, keys, prefix, (...declared) => {
    const weight = declareWeight(...declared);
    return "values" in weight && weight.format.digits === 3 ? widened(weight) : weight;
  });
}

/**
 * Declares the unembedding. Training multiplies few rows by it at a time, so it is fed the other way round
 * too; and a row of its gradient has one large entry, beside which one digit would lose the others.
 * Two are enough: a third moved the cosine of a whole gradient with that of 32 bits from 0.9996 to 0.9997.
 */
export function declareTrainedHead(graph: Graph, config: ModelConfig): Tensor | Int8Weight {
  const { shape } = outerWeightSpecs(config).embedding;
  const weight = declareWeight(graph, config, "head", shape);
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
  for (const { rotation } of kinds) {
    if (rotation === null || tables[rotation] !== undefined) continue;
    const shape = [Dim.symbol("positions"), rotaryWidth(config, rotation)];
    const { cos, sin } = tableNames(rotation);
    tables[rotation] = { cos: graph.input(cos, shape), sin: graph.input(sin, shape) };
  }
  return { positions, tables };
}
