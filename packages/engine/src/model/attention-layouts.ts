import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import { gatherRows, reshape, scatterRows, transpose } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";

/** How packed tokens are arranged for attention. */
export interface AttentionLayout {
  readonly sequences: Dim;
  /** Padded number of queries per sequence. */
  readonly queries: Dim;
  /**
   * [queries, keys]; hides later positions, and with them the padding at the end of a sequence, and
   * those that lie before a token's window.
   */
  mask(window: number | null): Tensor;
  /** Rows of tokens to [sequences, heads, queries, headDim]. */
  spreadQueries(rows: Tensor, heads: number): Tensor;
  /** Rows of tokens to [sequences, heads, keys, headDim]. */
  spreadKeys(rows: Tensor, heads: number): Tensor;
  /** The reverse of `spreadQueries`. */
  collect(stack: Tensor, heads: number): Tensor;
}

const swapTokensAndHeads = [0, 2, 1, 3];

/**
 * Sequences of one length, or a block of queries of one sequence and the keys up to its end: tokens and
 * heads merely swap places.
 */
export function denseLayout(
  graph: Graph,
  headDim: number,
  queries: Dim,
  keys: Dim,
): AttentionLayout {
  const sequences = Dim.symbol("sequences");
  const spread = (rows: Tensor, heads: number, length: Dim): Tensor =>
    transpose(reshape(rows, [sequences, length, heads, headDim]), swapTokensAndHeads);
  return {
    sequences,
    queries,
    mask: causalMasks(graph, queries, keys),
    spreadQueries: (rows, heads) => spread(rows, heads, queries),
    spreadKeys: (rows, heads) => spread(rows, heads, keys),
    collect: (stack) => transpose(stack, swapTokensAndHeads),
  };
}

/**
 * Sequences of several lengths, padded at the end to the longest. Every (token, head) has a slot in the
 * padded stack; scattering into zeros and gathering back never touch the padding.
 */
export function paddedLayout(
  graph: Graph,
  headDim: number,
  heads: readonly number[],
): AttentionLayout {
  const tokens = Dim.symbol("tokens");
  const [sequences, length] = [Dim.symbol("sequences"), Dim.symbol("queries")];
  const slots = new Map(
    heads.map((count) => [count, graph.input(`slots.${count}`, [tokens.times(count)], "int64")]),
  );
  const slotsOf = (count: number): Tensor => {
    const found = slots.get(count);
    if (found === undefined) throw new Error(`no slots for ${count} heads`);
    return found;
  };
  const spread = (rows: Tensor, count: number): Tensor => {
    const flat = reshape(rows, [tokens.times(count), headDim]);
    const stack = scatterRows(flat, slotsOf(count), sequences.times(length).times(count));
    return reshape(stack, [sequences, count, length, headDim]);
  };
  return {
    sequences,
    queries: length,
    mask: causalMasks(graph, length, length),
    spreadQueries: spread,
    spreadKeys: spread,
    collect: (stack, count) => {
      const flat = reshape(stack, [sequences.times(length).times(count), headDim]);
      return gatherRows(flat, slotsOf(count));
    },
  };
}

/**
 * Masks by window: 0 where a key may be seen, a huge negative number where it lies in the future or
 * outside the window. Layers with the same window share one.
 */
function causalMasks(graph: Graph, queries: Dim, keys: Dim): AttentionLayout["mask"] {
  const queryPositions = graph.input("queryPositions", [queries, 1], "int64");
  const keyPositions = graph.input("keyPositions", [1, keys], "int64");
  const shape = [queries, keys];
  const isGreater = (left: Tensor, right: Tensor): Tensor =>
    graph.applyOne({ type: "Greater", inputs: [left, right], shape, dtype: "bool" });
  const later = isGreater(keyPositions, queryPositions);
  const outside = (window: number): Tensor => {
    const first = graph.applyOne({
      type: "Sub",
      inputs: [queryPositions, graph.integers([window - 1])],
      shape: queryPositions.shape,
      dtype: "int64",
    });
    const inputs = [later, isGreater(first, keyPositions)];
    return graph.applyOne({ type: "Or", inputs, shape, dtype: "bool" });
  };
  const made = new Map<number | null, Tensor>();
  return (window) => {
    const known = made.get(window);
    if (known !== undefined) return known;
    const hidden = window === null ? later : outside(window);
    const inputs = [hidden, graph.scalar(-1e30), graph.scalar(0)];
    const mask = graph.applyOne({ type: "Where", inputs, shape });
    made.set(window, mask);
    return mask;
  };
}
