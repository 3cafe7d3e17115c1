import type { ModelConfig } from "../../files/model-config.js";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { differentiate } from "../../graph/differentiate.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import type { Tensor } from "../../graph/tensor.js";
import { declareAdapter } from "../../model/projectors.js";
import type { SiteGroup } from "../../model/sites.js";
import { layerOutputs } from "../../model/transformer.js";
import type { LayerWeightKey } from "../../model/weights.js";
import { at } from "../../util/at.js";
import { declareLayerWeights, layerSites } from "../../model/layer-inputs.js";
import {
  adaptedSites,
  adapterTensors,
  gradientName,
  lowName,
  trainedProjector,
  type Trained,
} from "./trained.js";

const keys = [
  "o",
  "oBias",
  "postNorm",
  "gate",
  "up",
  "down",
  "gateBias",
  "upBias",
  "downBias",
] as const satisfies readonly LayerWeightKey[];

/** From attention's result to the next layer's hidden states, keeping what the gradient needs. */
export function layerOutputsForward(config: ModelConfig, trained: Trained): CompiledGraph {
  const { graph, next, saved } = build(config, trained);
  return compileGraph(graph, { outputs: { next, ...saved } });
}

/** Gradients of the second part of a layer: parameters, attention's result, and the residual. */
export function layerOutputsBackward(config: ModelConfig, trained: Trained): CompiledGraph {
  const { graph, hidden, attended, next, saved, parameters } = build(config, trained);
  const seed = { of: next, gradient: graph.input(gradientName("next"), next.shape) };
  const wrt = Object.entries({ ...parameters, attended, residual: hidden });
  const gradients = differentiate(
    [seed],
    wrt.map(([, tensor]) => tensor),
  );
  const outputs: Record<string, Tensor> = {};
  for (const [index, [name]] of wrt.entries()) outputs[gradientName(name)] = at(gradients, index);
  return compileGraph(graph, { outputs, given: saved });
}

function build(config: ModelConfig, trained: Trained) {
  const graph = new Graph();
  const tokens = Dim.symbol("tokens");
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const attended = graph.input("attended", [tokens, config.heads * config.headDim]);
  const weights = declareLayerWeights(graph, config, keys);
  const adapter = declareAdapter(graph, config, ["o", "gateUp", "down"], adaptedSites(trained));
  const lows = new Map<SiteGroup, Tensor>();
  const project = trainedProjector(trained, layerSites(weights), adapter, lows);
  const made = layerOutputs(config, weights, project, hidden, attended);
  const saved: Record<string, Tensor> = {
    middle: made.middle,
    gateValues: made.gate,
    upValues: made.up,
  };
  for (const [group, low] of lows) saved[lowName(group)] = low;
  return {
    graph,
    hidden,
    attended,
    next: made.hidden,
    saved,
    parameters: trained.kind === "full" ? { ...weights } : adapterTensors(adapter),
  };
}
