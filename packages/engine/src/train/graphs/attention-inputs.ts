import type { ModelConfig } from "../../files/model-config.js";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { differentiate } from "../../graph/differentiate.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { add } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { declareAdapter } from "../../model/projectors.js";
import type { SiteGroup } from "../../model/sites.js";
import { attentionInputs } from "../../model/transformer.js";
import type { LayerWeightKey } from "../../model/weights.js";
import { at } from "../../util/at.js";
import { declareLayerWeights, declareRotary, layerSites } from "../../model/layer-inputs.js";
import {
  adaptedSites,
  adapterTensors,
  gradientName,
  lowName,
  trainedProjector,
  type Trained,
} from "./trained.js";

const keys = [
  "inputNorm",
  "q",
  "k",
  "v",
  "qBias",
  "kBias",
  "vBias",
  "qNorm",
  "kNorm",
] as const satisfies readonly LayerWeightKey[];

/** From hidden states to queries, keys and values, keeping what the backward pass needs. */
export function attentionInputsForward(config: ModelConfig, trained: Trained): CompiledGraph {
  const { graph, results, saved } = build(config, trained);
  return compileGraph(graph, { outputs: { ...results, ...saved } });
}

/**
 * Gradients of the first part of a layer. `inputGradient` also asks for that of the hidden states, to
 * which the gradient that arrived over the residual connection is added.
 */
export function attentionInputsBackward(
  config: ModelConfig,
  trained: Trained,
  inputGradient: boolean,
): CompiledGraph {
  const { graph, hidden, results, saved, parameters } = build(config, trained);
  const seeds = Object.entries(results).map(([name, of]) => ({
    of,
    gradient: graph.input(gradientName(name), of.shape),
  }));
  const wrt = Object.entries(parameters);
  const targets = wrt.map(([, tensor]) => tensor);
  const gradients = differentiate(seeds, inputGradient ? [...targets, hidden] : targets);
  const outputs: Record<string, Tensor> = {};
  for (const [index, [name]] of wrt.entries()) outputs[gradientName(name)] = at(gradients, index);
  if (inputGradient) {
    const residual = graph.input(gradientName("residual"), hidden.shape);
    outputs[gradientName("hidden")] = add(residual, at(gradients, wrt.length));
  }
  return compileGraph(graph, { outputs, given: saved });
}

function build(config: ModelConfig, trained: Trained) {
  const graph = new Graph();
  const tokens = Dim.symbol("tokens");
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const weights = declareLayerWeights(graph, config, keys);
  const adapter = declareAdapter(graph, config, ["qkv"], adaptedSites(trained));
  const { positions, tables } = declareRotary(graph, config, tokens);
  const lows = new Map<SiteGroup, Tensor>();
  const project = trainedProjector(trained, layerSites(weights), adapter, lows);
  const made = attentionInputs(config, weights, project, hidden, positions, tables);
  const saved: Record<string, Tensor> = {};
  if (config.qkNorm) Object.assign(saved, { rawQuery: made.rawQuery, rawKey: made.rawKey });
  for (const [group, low] of lows) saved[lowName(group)] = low;
  return {
    graph,
    hidden,
    results: { query: made.query, key: made.key, value: made.value },
    saved,
    parameters: trained.kind === "full" ? { ...weights } : adapterTensors(adapter),
  };
}
