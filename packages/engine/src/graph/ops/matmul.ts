import { describeShape, type Shape } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { reduceSum } from "./reduce.js";
import { dimAt, reshape } from "./shape.js";

/** Which operands of a product are taken transposed. */
export interface MatmulOptions {
  readonly transposeLeft?: boolean;
  readonly transposeRight?: boolean;
}

/** The product of two matrices, plus an optional matrix or row vector. */
export function matmul(
  left: Tensor,
  right: Tensor,
  options: MatmulOptions & { readonly plus?: Tensor } = {},
): Tensor {
  const { transposeLeft = false, transposeRight = false, plus } = options;
  const shape = productShape(left, right, transposeLeft, transposeRight);
  return left.graph.applyOne({
    type: "Gemm",
    inputs: plus === undefined ? [left, right] : [left, right, plus],
    attributes: { transA: Number(transposeLeft), transB: Number(transposeRight) },
    shape,
    vjp: ([gradient], wants) =>
      gradient === undefined
        ? []
        : [
            ...productGradients(
              matmul,
              left,
              right,
              transposeLeft,
              transposeRight,
              gradient,
              wants,
            ),
            wants(2) ? gradientOfAddend(gradient, plus) : undefined,
          ],
  });
}

/** `value @ weight^T`, the layout in which linear layers are stored. */
export function linear(value: Tensor, weight: Tensor, plus?: Tensor): Tensor {
  return matmul(value, weight, { transposeRight: true, ...(plus === undefined ? {} : { plus }) });
}

/** Products of stacks of matrices with equal leading sizes. */
export function batchMatmul(left: Tensor, right: Tensor, options: MatmulOptions = {}): Tensor {
  const { transposeLeft = false, transposeRight = false } = options;
  return left.graph.applyOne({
    type: "FusedMatMul",
    domain: "com.microsoft",
    inputs: [left, right],
    attributes: { transA: Number(transposeLeft), transB: Number(transposeRight) },
    shape: productShape(left, right, transposeLeft, transposeRight),
    vjp: ([gradient], wants) =>
      gradient === undefined
        ? []
        : productGradients(
            batchMatmul,
            left,
            right,
            transposeLeft,
            transposeRight,
            gradient,
            wants,
          ),
  });
}

type Product = (left: Tensor, right: Tensor, options: MatmulOptions) => Tensor;

function productGradients(
  product: Product,
  left: Tensor,
  right: Tensor,
  transposeLeft: boolean,
  transposeRight: boolean,
  gradient: Tensor,
  wants: (index: number) => boolean,
): readonly [Tensor | undefined, Tensor | undefined] {
  const ofLeft = (): Tensor =>
    transposeLeft
      ? product(right, gradient, { transposeLeft: transposeRight, transposeRight: true })
      : product(gradient, right, { transposeRight: !transposeRight });
  const ofRight = (): Tensor =>
    transposeRight
      ? product(gradient, left, { transposeLeft: true, transposeRight: transposeLeft })
      : product(left, gradient, { transposeLeft: !transposeLeft });
  return [wants(0) ? ofLeft() : undefined, wants(1) ? ofRight() : undefined];
}

function gradientOfAddend(gradient: Tensor, plus: Tensor | undefined): Tensor | undefined {
  if (plus === undefined || plus.shape.length === gradient.shape.length) return gradient;
  return reshape(reduceSum(gradient, [0]), plus.shape);
}

function productShape(
  left: Tensor,
  right: Tensor,
  transposeLeft: boolean,
  transposeRight: boolean,
): Shape {
  const rank = left.shape.length;
  const [rows, leftInner] = transposeLeft ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  const [rightInner, columns] = transposeRight ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  const fits =
    right.shape.length === rank &&
    dimAt(left, leftInner).equals(dimAt(right, rightInner)) &&
    left.shape.slice(0, -2).every((dim, axis) => right.shape[axis]?.equals(dim) === true);
  if (!fits) {
    const [l, r] = [describeShape(left.shape), describeShape(right.shape)];
    const flags = `${transposeLeft ? "transposed" : ""} ${transposeRight ? "by transposed" : "by"}`;
    throw new Error(`cannot multiply ${l} ${flags} ${r}`);
  }
  return [...left.shape.slice(0, -2), dimAt(left, rows), dimAt(right, columns)];
}
