import type { LayerKind } from "@tinker-ts/hub/weights";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { denseLayout } from "../../model/attention-layouts.js";
import type { ModelConfig } from "../../model/model-config.js";
import { attention } from "../../model/transformer.js";
import { fedSeeds, namedGradients } from "./trained.js";

/** Attention of a block of queries of one long sequence to the keys in its range. */
export function attentionBlockForward(config: ModelConfig, kind: LayerKind): CompiledGraph {
  const { graph, attended } = build(config, kind);
  return compileGraph(graph, { outputs: { attended } });
}

/** Gradients of a block's queries, keys and values; scores are computed again instead of kept. */
export function attentionBlockBackward(config: ModelConfig, kind: LayerKind): CompiledGraph {
  const { graph, attended, operands } = build(config, kind);
  const outputs = namedGradients(fedSeeds({ attended }), operands);
  return compileGraph(graph, { outputs, given: { attended } });
}

function build(config: ModelConfig, kind: LayerKind) {
  const { heads, kvHeads, headDim } = config;
  const graph = new Graph();
  const keys = Dim.symbol("keys");
  const layout = denseLayout(graph, headDim, Dim.symbol("queries"), keys);
  // Shapes at the border are those of the first operator, because a reshape there would be a copy.
  const operands = {
    query: graph.input("query", [layout.sequences, layout.queries, heads, headDim]),
    key: graph.input("key", [layout.sequences, keys, kvHeads, headDim]),
    value: graph.input("value", [layout.sequences, keys, kvHeads, headDim]),
  };
  return { graph, operands, attended: attention(config, kind, operands, layout) };
}
