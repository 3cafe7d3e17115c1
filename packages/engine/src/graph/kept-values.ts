import type { GraphNode, Tensor } from "./tensor.js";

/**
 * Views, which cost nothing, and 8-bit weights converted to 32 bits, which is done while others are read: keep
 * their source instead.
 */
const views: ReadonlySet<string> = new Set(["Reshape", "Identity", "DequantizeLinear"]);

/** Rearrangements of rows: expensive to recompute, but cheaper than keeping them beside their source. */
const rearrangements: ReadonlySet<string> = new Set(["Transpose", "ScatterND", "Gather"]);

/** Products of weights and of stacks. */
const products: ReadonlySet<string> = new Set(["Gemm", "FusedMatMul"]);

/**
 * How much of a forward pass is kept for the backward pass: everything it reads, or only values that are expensive to compute
 * again. The latter takes half the memory; the former is faster as long as values stay in the caches. A
 * rearrangement that can be recomputed from kept values is not kept.
 */
export type KeptKind = "all" | "dear";

/** The values that a forward pass to `results` computes on its way and `gradients` are computed from. */
export function keptValues(
  results: readonly Tensor[],
  gradients: readonly Tensor[],
  kind: KeptKind,
): readonly Tensor[] {
  const forward = new Set([...ancestors(results, () => false)].map(({ node }) => node));
  const isProduct = ({ isDear, type }: GraphNode): boolean => isDear || products.has(type);
  const isKept = (node: GraphNode): boolean => {
    if (!forward.has(node)) return false;
    if (kind === "all") return !views.has(node.type);
    return node.isDear || node.type === "Gemm" || rearrangements.has(node.type);
  };
  const kept = new Set<Tensor>();
  ancestors(gradients, (tensor, node) => {
    if (!isKept(node)) return false;
    kept.add(tensor);
    return true;
  });
  if (kind === "all") return inOrder(kept);
  for (const tensor of inOrder(kept).toReversed()) {
    const { node } = tensor;
    if (node === undefined || !rearrangements.has(node.type)) continue;
    const sources = node.inputs.filter((input) => input !== null);
    const missing = [...ancestors(sources, (source) => kept.has(source))].some(
      (source) => !kept.has(source) && source.node !== undefined && isProduct(source.node),
    );
    if (!missing) kept.delete(tensor);
  }
  return inOrder(kept);
}

function inOrder(tensors: Iterable<Tensor>): readonly Tensor[] {
  return [...tensors].toSorted((left, right) => left.id - right.id);
}

/** Computed values that some values depend on, themselves included, not looking behind a border. */
function ancestors(
  of: readonly Tensor[],
  isBorder: (tensor: Tensor, node: GraphNode) => boolean,
): ReadonlySet<Tensor> {
  const found = new Set<Tensor>();
  const waiting = [...of];
  for (let tensor = waiting.pop(); tensor !== undefined; tensor = waiting.pop()) {
    const { node } = tensor;
    if (node === undefined || found.has(tensor)) continue;
    found.add(tensor);
    if (isBorder(tensor, node)) continue;
    for (const input of node.inputs) if (input !== null) waiting.push(input);
  }
  return found;
}
