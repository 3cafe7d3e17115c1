import type { ModelConfig } from "../../files/model-config.js";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { differentiate } from "../../graph/differentiate.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import type { Tensor } from "../../graph/tensor.js";
import { packedAttention } from "../../model/transformer.js";
import { at } from "../../util/at.js";
import { gradientName } from "./trained.js";

/** Attention of one group of sequences, or of a block of queries of one long sequence. */
export function attentionForward(config: ModelConfig): CompiledGraph {
  const { graph, attended } = build(config);
  return compileGraph(graph, { outputs: { attended } });
}

/** Gradients of queries, keys and values; scores are computed again instead of being kept. */
export function attentionBackward(config: ModelConfig): CompiledGraph {
  const { graph, attended, operands } = build(config);
  const seed = { of: attended, gradient: graph.input(gradientName("attended"), attended.shape) };
  const names = Object.entries(operands);
  const gradients = differentiate(
    [seed],
    names.map(([, tensor]) => tensor),
  );
  const outputs: Record<string, Tensor> = {};
  for (const [index, [name]] of names.entries()) {
    outputs[gradientName(name)] = at(gradients, index);
  }
  return compileGraph(graph, { outputs, given: { attended } });
}

function build(config: ModelConfig) {
  const { heads, kvHeads, headDim } = config;
  const graph = new Graph();
  const [tokens, keyTokens] = [Dim.symbol("tokens"), Dim.symbol("keyTokens")];
  const [queries, keys] = [Dim.symbol("queries"), Dim.symbol("keys")];
  const operands = {
    query: graph.input("query", [tokens, heads * headDim]),
    key: graph.input("key", [keyTokens, kvHeads * headDim]),
    value: graph.input("value", [keyTokens, kvHeads * headDim]),
  };
  const attended = packedAttention(config, operands, {
    querySlots: graph.input("querySlots", [tokens.times(heads)], "int64"),
    keySlots: graph.input("keySlots", [keyTokens.times(kvHeads)], "int64"),
    mask: causalMask(graph, queries, keys),
    sequences: Dim.symbol("sequences"),
  });
  return { graph, operands, attended };
}

/** [queries, keys]: 0 where a key may be seen, a huge negative number where it lies in the future. */
function causalMask(graph: Graph, queries: Dim, keys: Dim): Tensor {
  const queryPositions = graph.input("queryPositions", [queries, 1], "int64");
  const keyPositions = graph.input("keyPositions", [1, keys], "int64");
  const shape = [queries, keys];
  const hidden = graph.applyOne({
    type: "Greater",
    inputs: [keyPositions, queryPositions],
    shape,
    dtype: "bool",
  });
  const inputs = [hidden, graph.scalar(-1e30), graph.scalar(0)];
  return graph.applyOne({ type: "Where", inputs, shape });
}
