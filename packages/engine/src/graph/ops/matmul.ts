import { describeShape, type Shape } from "../dim.js";
import type { Attribute, Tensor } from "../tensor.js";
import { add } from "./elementwise.js";
import { reduceSum } from "./reduce.js";
import { dimAt, reshape } from "./shape.js";

/** Options of a product. */
export interface MatmulOptions {
  readonly transposeLeft?: boolean;
  readonly transposeRight?: boolean;
  /** Factor of the product. @default 1 */
  readonly scale?: number;
}

/** The product of two matrices, plus an optional matrix or row vector. */
export function matmul(
  left: Tensor,
  right: Tensor,
  options: MatmulOptions & { readonly plus?: Tensor } = {},
): Tensor {
  const { plus, ...flags } = options;
  return left.graph.applyOne({
    type: "Gemm",
    inputs: plus === undefined ? [left, right] : [left, right, plus],
    attributes: productAttributes(flags),
    shape: productShape(left, right, flags),
    vjp: ([gradient], wants) =>
      gradient === undefined
        ? []
        : [
            ...productGradients(matmul, left, right, flags, gradient, wants),
            wants(2) ? gradientOfAddend(gradient, plus) : undefined,
          ],
  });
}

/** `sum + addend`; where the addend is a product of its own, the product adds the sum as it goes. */
export function addTo(sum: Tensor, addend: Tensor): Tensor {
  const { node } = addend;
  const [left, right, plus] = node?.inputs ?? [];
  const isPlainProduct = node?.type === "Gemm" && plus === undefined;
  if (!isPlainProduct || left == null || right == null) return add(sum, addend);
  return addend.graph.applyOne({
    type: "Gemm",
    inputs: [left, right, sum],
    attributes: node.attributes,
    shape: addend.shape,
  });
}

/** `value @ weight^T`, the layout in which linear layers are stored. */
export function linear(value: Tensor, weight: Tensor, plus?: Tensor): Tensor {
  return matmul(value, weight, { transposeRight: true, ...(plus === undefined ? {} : { plus }) });
}

/** Products of stacks of matrices with equal leading sizes. */
export function batchMatmul(left: Tensor, right: Tensor, options: MatmulOptions = {}): Tensor {
  return left.graph.applyOne({
    type: "FusedMatMul",
    domain: "com.microsoft",
    inputs: [left, right],
    attributes: productAttributes(options),
    shape: productShape(left, right, options),
    vjp: ([gradient], wants) =>
      gradient === undefined
        ? []
        : productGradients(batchMatmul, left, right, options, gradient, wants),
  });
}

type Product = (left: Tensor, right: Tensor, options: MatmulOptions) => Tensor;

function productGradients(
  product: Product,
  left: Tensor,
  right: Tensor,
  options: MatmulOptions,
  gradient: Tensor,
  wants: (index: number) => boolean,
): readonly [Tensor | undefined, Tensor | undefined] {
  const { transposeLeft = false, transposeRight = false, scale = 1 } = options;
  const ofLeft = (): Tensor =>
    transposeLeft
      ? product(right, gradient, { transposeLeft: transposeRight, transposeRight: true, scale })
      : product(gradient, right, { transposeRight: !transposeRight, scale });
  const ofRight = (): Tensor =>
    transposeRight
      ? product(gradient, left, { transposeLeft: true, transposeRight: transposeLeft, scale })
      : product(left, gradient, { transposeLeft: !transposeLeft, scale });
  return [wants(0) ? ofLeft() : undefined, wants(1) ? ofRight() : undefined];
}

function productAttributes(options: MatmulOptions): Record<string, Attribute> {
  const { transposeLeft = false, transposeRight = false, scale = 1 } = options;
  return {
    transA: Number(transposeLeft),
    transB: Number(transposeRight),
    alpha: { float: scale },
  };
}

function gradientOfAddend(gradient: Tensor, plus: Tensor | undefined): Tensor | undefined {
  if (plus === undefined || plus.shape.length === gradient.shape.length) return gradient;
  return reshape(reduceSum(gradient, [0]), plus.shape);
}

function productShape(left: Tensor, right: Tensor, options: MatmulOptions): Shape {
  const { transposeLeft = false, transposeRight = false } = options;
  const rank = left.shape.length;
  const [rows, leftInner] = transposeLeft ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  const [rightInner, columns] = transposeRight ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  const fits =
    right.shape.length === rank &&
    dimAt(left, leftInner).equals(dimAt(right, rightInner)) &&
    left.shape.slice(0, -2).every((dim, axis) => right.shape[axis]?.equals(dim) === true);
  if (!fits) {
    const [l, r] = [describeShape(left.shape), describeShape(right.shape)];
    throw new Error(
      `cannot multiply ${l}${transposeLeft ? "^T" : ""} by ${r}${transposeRight ? "^T" : ""}`,
    );
  }
  return [...left.shape.slice(0, -2), dimAt(left, rows), dimAt(right, columns)];
}
