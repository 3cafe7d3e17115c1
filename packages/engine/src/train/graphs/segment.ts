import type { LayerKind, ModelConfig } from "../../files/model-config.js";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import type { KeptKind } from "../../graph/kept-values.js";
import type { Tensor } from "../../graph/tensor.js";
import { denseLayout, paddedLayout, type AttentionLayout } from "../../model/attention-layouts.js";
import { declareAdapter } from "../../model/projectors.js";
import { layerGroups } from "../../model/sites.js";
import {
  attention,
  attentionInputs,
  layerOutputs,
  type RotationInputs,
} from "../../model/transformer.js";
import { layerWeightKeys } from "../../model/weights.js";
import { declareTrainedLayer, declareRotation } from "../../model/layer-inputs.js";
import { fedSeeds, namedGradients, namedKept } from "./gradients.js";
import { adaptedSites, adapterTensors, trainedProjector, type Trained } from "./trained.js";

/** What a segment is compiled for. */
export interface SegmentOptions {
  /** Kinds of the layers in a row. */
  readonly kinds: readonly LayerKind[];
  /** Sequences of one length, or of several that are padded inside attention. */
  readonly layout: "dense" | "padded";
  readonly trained: Trained;
  /** Whether the gradient of the first hidden states is wanted too. */
  readonly inputGradient: boolean;
  /** What the forward pass keeps. */
  readonly keep: KeptKind;
}

/** Prefix of everything that belongs to the n-th layer of a segment. */
export function inSegment(index: number, name: string): string {
  return `${index}.${name}`;
}

/** Several layers forwards, keeping what their backward pass needs. */
export function segmentForward(config: ModelConfig, options: SegmentOptions): CompiledGraph {
  const { graph, next, kept } = build(config, options);
  return compileGraph(graph, { outputs: { next, ...kept } });
}

/** Gradients of several layers. */
export function segmentBackward(config: ModelConfig, options: SegmentOptions): CompiledGraph {
  const { graph, gradients, kept } = build(config, options);
  return compileGraph(graph, { outputs: gradients, given: kept });
}

function build(config: ModelConfig, options: SegmentOptions) {
  const { graph, hidden, next, parameters } = buildLayers(config, options);
  const wrt = options.inputGradient ? { ...parameters, hidden } : parameters;
  const gradients = namedGradients(fedSeeds({ next }), wrt);
  return { graph, next, gradients, kept: namedKept({ next }, gradients, options.keep) };
}

interface SegmentLayer {
  readonly next: Tensor;
  readonly parameters: Record<string, Tensor>;
}

function buildLayers(config: ModelConfig, options: SegmentOptions) {
  const graph = new Graph();
  const { layout, tokens } = declareLayout(graph, config, options.layout);
  const rotation = declareRotation(graph, config, options.kinds, tokens);
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const parameters: Record<string, Tensor> = {};
  let next = hidden;
  for (const [index, kind] of options.kinds.entries()) {
    const { trained } = options;
    const layer = buildLayer(graph, config, kind, trained, index, next, layout, rotation);
    Object.assign(parameters, layer.parameters);
    next = layer.next;
  }
  return { graph, hidden, next, parameters };
}

function buildLayer(
  graph: Graph,
  config: ModelConfig,
  kind: LayerKind,
  trained: Trained,
  index: number,
  hidden: Tensor,
  layout: AttentionLayout,
  rotation: RotationInputs,
): SegmentLayer {
  const prefix = inSegment(index, "");
  const { weights, sites } = declareTrainedLayer(graph, config, layerWeightKeys, prefix);
  const adapter = declareAdapter(graph, config, layerGroups, adaptedSites(trained), prefix);
  const project = trainedProjector(config, trained, sites, adapter);
  const inputs = attentionInputs(config, kind, weights, project, hidden, rotation);
  const attended = attention(config, kind, inputs, layout);
  return {
    next: layerOutputs(config, weights, project, hidden, attended),
    parameters:
      trained.kind === "full" ? prefixed(index, weights) : adapterTensors(adapter, prefix),
  };
}

function declareLayout(
  graph: Graph,
  config: ModelConfig,
  kind: SegmentOptions["layout"],
): { readonly layout: AttentionLayout; readonly tokens: Dim } {
  if (kind === "padded") {
    const heads = [...new Set([config.heads, config.kvHeads])];
    return { layout: paddedLayout(graph, config.headDim, heads), tokens: Dim.symbol("tokens") };
  }
  const length = Dim.symbol("queries");
  const layout = denseLayout(graph, config.headDim, length, length);
  return { layout, tokens: layout.sequences.times(length) };
}

function prefixed(
  index: number,
  tensors: Readonly<Record<string, Tensor | undefined>>,
): Record<string, Tensor> {
  const renamed: Record<string, Tensor> = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    if (tensor !== undefined) renamed[inSegment(index, name)] = tensor;
  }
  return renamed;
}
