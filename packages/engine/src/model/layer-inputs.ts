import type { ModelConfig } from "../files/model-config.js";
import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import type { RotaryTables } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { SiteLookup, SiteTensors } from "./projectors.js";
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

/** Positions of the tokens and the table of angles by position. */
export function declareRotary(
  graph: Graph,
  config: ModelConfig,
  tokens: Dim,
): { readonly positions: Tensor; readonly tables: RotaryTables } {
  const shape = [Dim.symbol("positions"), config.headDim / 2];
  return {
    positions: graph.input("positions", [tokens, 1], "int64"),
    tables: { cos: graph.input("cos", shape), sin: graph.input("sin", shape) },
  };
}
