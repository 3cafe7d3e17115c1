import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import type { ModelConfig } from "../../model/model-config.js";
import { declareAdapter } from "../../model/projectors.js";
import { attentionOutput, layerOutputs } from "../../model/transformer.js";
import type { LayerKind, LayerTensorKey } from "@tinker-ts/hub/weights";
import { declareTrainedLayer } from "../../model/layer-inputs.js";
import {
  adaptedSites,
  adapterTensors,
  fedSeeds,
  namedGradients,
  namedKept,
  type Trained,
  trainedProjector,
} from "./trained.js";

const keys = [
  "o",
  "oBias",
  "attendedNorm",
  "middleNorm",
  "gate",
  "up",
  "gateUp",
  "down",
  "gateBias",
  "upBias",
  "gateUpBias",
  "downBias",
  "outputNorm",
] as const satisfies readonly LayerTensorKey[];

/** From attention's result to the next layer's hidden states, keeping the values that the gradient needs. */
export function layerOutputsForward(
  config: ModelConfig,
  kind: LayerKind,
  trained: Trained,
): CompiledGraph {
  const { graph, next, kept } = build(config, kind, trained);
  return compileGraph(graph, { outputs: { next, ...kept } });
}

/** Gradients of the second part of a layer: parameters, attention's result, and the residual. */
export function layerOutputsBackward(
  config: ModelConfig,
  kind: LayerKind,
  trained: Trained,
): CompiledGraph {
  const { graph, gradients, kept } = build(config, kind, trained);
  return compileGraph(graph, { outputs: gradients, given: kept });
}

function build(config: ModelConfig, kind: LayerKind, trained: Trained) {
  const graph = new Graph();
  const tokens = Dim.symbol("tokens");
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const shape = [tokens, config.heads * config.headDim];
  const attended = graph.input("attended", shape);
  const gate = config.gatedAttention === true ? { queryGate: graph.input("queryGate", shape) } : {};
  const { weights, sites } = declareTrainedLayer(graph, config, kind, { keys });
  const adapter = declareAdapter(graph, config, ["o", "gateUp", "down"], adaptedSites(trained));
  const project = trainedProjector(config, trained, sites, adapter);
  const mixed = attentionOutput(config, project, attended, tokens, gate.queryGate);
  const next = layerOutputs(config, kind, weights, project, hidden, mixed);
  const parameters = trained.kind === "full" ? { ...weights } : adapterTensors(adapter);
  const wrt = { ...parameters, attended, ...gate, residual: hidden };
  const gradients = namedGradients(fedSeeds({ next }), wrt);
  return { graph, next, gradients, kept: namedKept({ next }, gradients, "dear", "outputs.kept") };
}
