import { mixerOf, type LayerKind } from "@tinker-ts/hub/weights";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import type { KeptKind } from "../../graph/kept-values.js";
import type { Tensor } from "../../graph/tensor.js";
import { denseLayout, paddedLayout, type AttentionLayout } from "../../model/attention-layouts.js";
import type { ModelConfig } from "../../model/model-config.js";
import { declareAdapter } from "../../model/projectors.js";
import { groupsOf } from "../../model/sites.js";
import {
  attention,
  attentionInputs,
  attentionOutput,
  layerOutputs,
  recurrentOutput,
  type Projector,
} from "../../model/transformer.js";
import type { LayerWeights } from "../../model/weights.js";
import { declareTrainedLayer, declareRotation } from "../../model/layer-inputs.js";
import {
  adaptedSites,
  adapterTensors,
  fedSeeds,
  namedGradients,
  namedKept,
  type Trained,
  trainedProjector,
} from "./trained.js";
import { TrainingRecurrence, type StateOfBlocks } from "./training-recurrence.js";

/** Options of a segment. */
export interface SegmentOptions {
  /** Kinds of the layers in a row. */
  readonly kinds: readonly LayerKind[];
  /** Sequences of one length, or of several that are padded inside attention. */
  readonly layout: "dense" | "padded";
  /** Chunks that the longest sequence has in layers with a state. */
  readonly chunks: number;
  /** Whether states are passed between blocks of tokens. @default false */
  readonly handsOn?: boolean;
  readonly trained: Trained;
  /** Whether the gradient of the first hidden states is requested too. */
  readonly inputGradient: boolean;
  /** Values that the forward pass keeps. */
  readonly keep: KeptKind;
}

/** Prefix of everything that belongs to the n-th layer of a segment. */
export function inSegment(index: number, name: string): string {
  return `${index}.${name}`;
}

/** Several layers forwards, keeping the values that their backward pass needs. */
export function segmentForward(config: ModelConfig, options: SegmentOptions): CompiledGraph {
  const { graph, next, ends, kept } = build(config, options);
  return compileGraph(graph, { outputs: { next, ...ends, ...kept } });
}

/** Gradients of several layers. */
export function segmentBackward(config: ModelConfig, options: SegmentOptions): CompiledGraph {
  const { graph, gradients, kept } = build(config, options);
  return compileGraph(graph, { outputs: gradients, given: kept });
}

function build(config: ModelConfig, options: SegmentOptions) {
  const { graph, hidden, next, parameters, states } = buildLayers(config, options);
  const { starts, ends } = states;
  const wrt = { ...parameters, ...starts, ...(options.inputGradient ? { hidden } : {}) };
  const gradients = namedGradients(fedSeeds({ next, ...ends }), wrt);
  const kept = namedKept({ next, ...ends }, gradients, options.keep);
  return { graph, next, ends, gradients, kept };
}

function buildLayers(config: ModelConfig, options: SegmentOptions) {
  const graph = new Graph();
  const { layout, tokens } = declareLayout(graph, config, options.layout);
  const rotation = declareRotation(graph, config, options.kinds, tokens);
  const hidden = graph.input("hidden", [tokens, config.hiddenSize]);
  const parameters: Record<string, Tensor> = {};
  const states: StateOfBlocks = { starts: {}, ends: {} };
  let next = hidden;
  for (const [index, kind] of options.kinds.entries()) {
    const { trained } = options;
    const prefix = inSegment(index, "");
    const { weights, sites } = declareTrainedLayer(graph, config, kind, { prefix });
    const adapter = declareAdapter(graph, config, groupsOf(kind), adaptedSites(trained), prefix);
    const project = trainedProjector(config, trained, sites, adapter);
    const mix = mixerOf(kind) === "attention" ? attend : recur;
    const mixed = mix(kind, weights, project, next, prefix);
    next = layerOutputs(config, kind, weights, project, next, mixed);
    Object.assign(
      parameters,
      trained.kind === "full" ? prefixed(index, weights) : adapterTensors(adapter, prefix),
    );
  }
  return { graph, hidden, next, parameters, states };

  function attend(
    kind: LayerKind,
    weights: LayerWeights<Tensor>,
    project: Projector,
    value: Tensor,
  ): Tensor {
    const inputs = attentionInputs(config, kind, weights, project, value, rotation);
    const attended = attention(config, kind, inputs, layout);
    return attentionOutput(config, project, attended, tokens, inputs.queryGate);
  }

  function recur(
    kind: LayerKind,
    weights: LayerWeights<Tensor>,
    project: Projector,
    value: Tensor,
    prefix: string,
  ): Tensor {
    const { chunks, handsOn = false } = options;
    const { sequences } = layout;
    const own = { graph, tokens, sequences, chunks, prefix, states: handsOn ? states : undefined };
    return recurrentOutput(config, kind, weights, project, value, new TrainingRecurrence(own));
  }
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
