import {
  Dim,
  describeShape,
  sameShape,
  shapeOf,
  sizeOf,
  type DimLike,
  type Shape,
} from "../dim.js";
import type { Tensor } from "../tensor.js";

/** The same elements in another shape. Of several in a row only the last is computed. */
export function reshape(value: Tensor, shape: readonly DimLike[]): Tensor {
  const target = shapeOf(shape);
  if (sameShape(value.shape, target)) return value;
  const [source] = value.node?.type === "Reshape" ? value.node.inputs : [];
  if (source != null) return reshape(source, shape);
  if (!sizeOf(value.shape).equals(sizeOf(target))) {
    throw new Error(`cannot reshape ${describeShape(value.shape)} to ${describeShape(target)}`);
  }
  return value.graph.applyOne({
    type: "Reshape",
    inputs: [value, reshapeTarget(value, target)],
    shape: target,
    dtype: value.dtype,
    vjp: ([gradient]) => [gradient && reshape(gradient, value.shape)],
  });
}

/** Axes in another order. */
export function transpose(value: Tensor, order: readonly number[]): Tensor {
  const inverse: number[] = [];
  for (const [to, from] of order.entries()) inverse[from] = to;
  return value.graph.applyOne({
    type: "Transpose",
    inputs: [value],
    attributes: { perm: order },
    shape: order.map((axis) => dimAt(value, axis)),
    dtype: value.dtype,
    vjp: ([gradient]) => [gradient && transpose(gradient, inverse)],
  });
}

/** Values one after the other along an axis. */
export function concat(values: readonly Tensor[], axis: number): Tensor {
  const [first] = values;
  if (first === undefined) throw new Error("concat needs at least one value");
  const sizes = values.map((value) => dimAt(value, axis));
  const total = sizes.reduce((sum, size) => sum.plus(size), Dim.of(0));
  return first.graph.applyOne({
    type: "Concat",
    inputs: values,
    attributes: { axis },
    shape: first.shape.map((dim, index) => (index === axis ? total : dim)),
    dtype: first.dtype,
    vjp: ([gradient]) => (gradient === undefined ? [] : split(gradient, axis, sizes)),
  });
}

/** Consecutive parts of the given sizes along an axis. */
export function split(value: Tensor, axis: number, sizes: readonly DimLike[]): readonly Tensor[] {
  const parts = shapeOf(sizes);
  const outputs = parts.map((size) => ({
    shape: value.shape.map((dim, index) => (index === axis ? size : dim)),
  }));
  return value.graph.apply({
    type: "Split",
    inputs: [value, value.graph.shapeValue(parts)],
    attributes: { axis },
    outputs,
    vjp: (gradients) => [
      concat(
        gradients.map((gradient, index) => gradient ?? zeros(value, outputs[index]?.shape ?? [])),
        axis,
      ),
    ],
  });
}

/** Axes of size 1 repeated to a larger shape. */
export function expand(value: Tensor, shape: Shape): Tensor {
  if (sameShape(value.shape, shape)) return value;
  const { graph } = value;
  return graph.applyOne({
    type: "Expand",
    inputs: [value, graph.shapeValue(shape)],
    shape,
    dtype: value.dtype,
  });
}

/** Zeros in the graph of another value. */
export function zeros(like: Tensor, shape: Shape): Tensor {
  return expand(
    reshape(
      like.graph.scalar(0),
      shape.map(() => 1),
    ),
    shape,
  );
}

/** The size of one axis. */
export function dimAt(value: Tensor, axis: number): Dim {
  const dim = value.shape[axis];
  if (dim === undefined) throw new Error(`${describeShape(value.shape)} has no axis ${axis}`);
  return dim;
}

/** One symbolic size can be left to the runtime as -1, which spares an extra input. */
function reshapeTarget(value: Tensor, target: Shape): Tensor {
  const sizes = target.map((dim) => dim.constant);
  const open = sizes.filter((size) => size === undefined).length;
  if (open !== 1) return value.graph.shapeValue(target);
  return value.graph.integers(sizes.map((size) => size ?? -1));
}
