import { Dim } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { expand } from "./shape.js";

/** The sum over some axes, which stay with size 1. */
export function reduceSum(value: Tensor, axes: readonly number[]): Tensor {
  const { graph } = value;
  return graph.applyOne({
    type: "ReduceSum",
    inputs: [value, graph.integers(axes)],
    attributes: { keepdims: 1 },
    shape: value.shape.map((dim, axis) => (axes.includes(axis) ? Dim.of(1) : dim)),
    vjp: ([gradient]) => [gradient && expand(gradient, value.shape)],
  });
}
