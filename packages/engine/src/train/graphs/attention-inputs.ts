import type { LayerKind, LayerTensorKey } from "@tinker-ts/hub/weights";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { add } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import type { ModelConfig } from "../../model/model-config.js";
import { declareAdapter } from "../../model/projectors.js";
import { attentionInputs } from "../../model/transformer.js";
import { declareTrainedLayer, declareRotation } from "../../model/layer-inputs.js";
import {
  adaptedSites,
  adapterTensors,
  fedSeeds,
  gradientName,
  namedGradients,
  namedKept,
  type Trained,
  trainedProjector,
} from "./trained.js";

const keys = [
  "inputNorm",
  "q",
  "k",
  "v",
  "qkv",
  "qBias",
  "kBias",
  "vBias",
  "qkvBias",
  "qNorm",
  "kNorm",
] as const satisfies readonly LayerTensorKey[];

/** From hidden states to queries, keys, values and gates, keeping the values that the backward pass needs. */
export function attentionInputsForward(
  config: ModelConfig,
  kind: LayerKind,
  trained: Trained,
): CompiledGraph {
  const { graph, results, kept } = build(config, kind, trained);
  return compileGraph(graph, { outputs: { ...results, ...kept } });
}

/**
 * Gradients of the first part of a layer. `inputGradient` also asks for that of the hidden states, to
 * which the gradient that arrived over the residual connection is added.
 */
export function attentionInputsBackward(
  config: ModelConfig,
  kind: LayerKind,
  trained: Trained,
  inputGradient: boolean,
): CompiledGraph {
  const { graph, gradients, ofHidden, kept } = build(config, kind, trained);
  const outputs: Record<string, Tensor> = { ...gradients };
  if (inputGradient) {
    const residual = graph.input(gradientName("residual"), ofHidden.shape);
    outputs[gradientName("hidden")] = add(residual, ofHidden);
  }
  return compileGraph(graph, { outputs, given: kept });
}

function build(config: ModelConfig, kind: LayerKind, trained: Trained) {
  const graph = new Graph();
  const tokens = Dim.symbol("tokens");
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const { weights, sites } = declareTrainedLayer(graph, config, kind, { keys });
  const adapter = declareAdapter(graph, config, ["qkv"], adaptedSites(trained));
  const rotation = declareRotation(graph, config, [kind], tokens);
  const project = trainedProjector(config, trained, sites, adapter);
  const results = { ...attentionInputs(config, kind, weights, project, hidden, rotation) };
  const parameters = trained.kind === "full" ? { ...weights } : adapterTensors(adapter);
  const found = namedGradients(fedSeeds(results), { ...parameters, hidden });
  const { [gradientName("hidden")]: ofHidden, ...gradients } = found;
  if (ofHidden === undefined) throw new Error("the hidden states have no gradient");
  const kept = namedKept(results, found, "dear", "inputs.kept");
  return { graph, results, gradients, ofHidden, kept };
}
