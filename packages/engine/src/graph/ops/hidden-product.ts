import type { Tensor } from "../tensor.js";
import { matmul } from "./matmul.js";

/**
 * The value of `sum`, with the gradients of `rest + left @ right^T`: for a sum that already contains the
 * product when its gradient should go through the product's factors.
 */
export function withHiddenProduct(sum: Tensor, left: Tensor, right: Tensor): Tensor {
  return sum.graph.applyOne({
    type: "Identity",
    inputs: [sum],
    gradientInputs: [sum, left, right],
    shape: sum.shape,
    vjp: ([gradient], wants) =>
      gradient === undefined
        ? []
        : [
            gradient,
            wants(1) ? matmul(gradient, right) : undefined,
            wants(2) ? matmul(gradient, left, { transposeLeft: true }) : undefined,
          ],
  });
}
