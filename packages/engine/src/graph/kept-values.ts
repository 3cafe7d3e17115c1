import type { GraphNode, Tensor } from "./tensor.js";

/** Views, which the runtime makes for nothing: it is their source that is worth keeping. */
const views: ReadonlySet<string> = new Set(["Reshape", "Identity"]);

/** Matrix products, and rearrangements of rows: dear to compute again. */
const dear: ReadonlySet<string> = new Set(["Gemm", "Transpose", "ScatterND", "Gather"]);

/**
 * How much of a forward pass is kept for the backward pass: all that it reads, or what is dear to compute
 * again. The latter takes half the memory; the former is faster as long as values stay in the caches.
 */
export type KeptKind = "all" | "dear";

/** The values that a forward pass to `results` computes on its way and `gradients` are computed from. */
export function keptValues(
  results: readonly Tensor[],
  gradients: readonly Tensor[],
  kind: KeptKind,
): readonly Tensor[] {
  const forward = new Set([...ancestors(results, () => false)].map(({ node }) => node));
  const isKept = (node: GraphNode): boolean =>
    forward.has(node) &&
    (kind === "all" ? !views.has(node.type) : node.isDear || dear.has(node.type));
  const kept: Tensor[] = [];
  ancestors(gradients, (tensor, node) => {
    if (!isKept(node)) return false;
    kept.push(tensor);
    return true;
  });
  return kept.toSorted((left, right) => left.id - right.id);
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
