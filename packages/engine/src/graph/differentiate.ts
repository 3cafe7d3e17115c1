import { describeShape, sameShape } from "./dim.js";
import { addTo } from "./ops/matmul.js";
import type { GraphNode, Tensor } from "./tensor.js";

/** Where differentiation starts: a value and the gradient that flows into it. */
export interface GradientSeed {
  readonly of: Tensor;
  readonly gradient: Tensor;
}

/**
 * Reverse-mode differentiation: appends the gradients of `wrt` to the graph and returns them in order.
 *
 * Only nodes between `wrt` and the seeds are walked, so frozen parts cost nothing. A value that has no
 * path to a seed is an error: silently returning zeros would hide a wiring mistake.
 */
export function differentiate(
  seeds: readonly GradientSeed[],
  wrt: readonly Tensor[],
): readonly Tensor[] {
  const graph = seeds[0]?.of.graph;
  if (graph === undefined) throw new Error("differentiation needs at least one seed");
  const forward = [...graph.nodes];
  const active = dependents(forward, wrt);
  const gradients = new Map<number, Tensor>();
  const accumulate = (tensor: Tensor, gradient: Tensor): void => {
    if (!sameShape(tensor.shape, gradient.shape)) {
      const [expected, actual] = [describeShape(tensor.shape), describeShape(gradient.shape)];
      throw new Error(`gradient of shape ${actual} for a value of shape ${expected}`);
    }
    const sum = gradients.get(tensor.id);
    gradients.set(tensor.id, sum === undefined ? gradient : addTo(sum, gradient));
  };

  for (const { of, gradient } of seeds) accumulate(of, gradient);
  for (const node of forward.toReversed()) {
    const outputGradients = node.outputs.map((output) => gradients.get(output.id));
    if (!outputGradients.some((gradient) => gradient !== undefined)) continue;
    propagate(node, outputGradients, active, accumulate);
  }
  return wrt.map((tensor, index) => {
    const gradient = gradients.get(tensor.id);
    if (gradient === undefined) throw new Error(`no path from wrt[${index}] to a seed`);
    return gradient;
  });
}

function propagate(
  node: GraphNode,
  outputGradients: readonly (Tensor | undefined)[],
  active: ReadonlySet<number>,
  accumulate: (tensor: Tensor, gradient: Tensor) => void,
): void {
  const wants = (index: number): boolean => {
    const input = node.gradientInputs[index];
    return input !== undefined && input !== null && active.has(input.id);
  };
  if (node.vjp === undefined || !node.gradientInputs.some((_, index) => wants(index))) return;
  const inputGradients = node.vjp(outputGradients, wants);
  for (const [index, input] of node.gradientInputs.entries()) {
    const gradient = inputGradients[index];
    if (input !== null && gradient !== undefined && wants(index)) accumulate(input, gradient);
  }
}

/** All values that depend on `roots` through differentiable nodes. */
function dependents(nodes: readonly GraphNode[], roots: readonly Tensor[]): ReadonlySet<number> {
  const reached = new Set(roots.map((tensor) => tensor.id));
  for (const node of nodes) {
    if (node.vjp === undefined) continue;
    if (node.gradientInputs.some((input) => input !== null && reached.has(input.id))) {
      for (const output of node.outputs) reached.add(output.id);
    }
  }
  return reached;
}
