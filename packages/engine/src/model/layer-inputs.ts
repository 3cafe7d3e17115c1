import type { LayerKind, ModelConfig, Rotation } from "../files/model-config.js";
import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import type { RotaryTables } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { SiteLookup, SiteTensors } from "./projectors.js";
import { rotaryWidth, tableNames } from "./rotary-tables.js";
import type { RotationInputs } from "./transformer.js";
import { layerWeightSpecs, type LayerWeightKey, type LayerWeights } from "./weights.js";

/** Declares weights of a layer; feeds have the names of their keys, after a prefix. */
export function declareLayerWeights(
  graph: Graph,
  config: ModelConfig,
  keys: readonly LayerWeightKey[],
  prefix = "",
): LayerWeights<Tensor> {
  const specs = layerWeightSpecs(config, 0);
  const weights: { [K in LayerWeightKey]?: Tensor } = {};
  for (const key of keys) {
    const spec = specs[key];
    if (spec !== undefined) weights[key] = graph.input(`${prefix}${key}`, spec.shape);
  }
  return weights;
}

/** Finds the linear layer of a site among a layer's weights. */
export function layerSites(weights: LayerWeights<Tensor>): SiteLookup {
  return (site): SiteTensors => {
    if (site === "head") throw new Error("the head belongs to no layer");
    const weight = weights[site];
    if (weight === undefined) throw new Error(`the graph has no weight for ${site}`);
    return { weight, bias: weights[`${site}Bias`] };
  };
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
