import { shapeOf } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { multiply } from "./elementwise.js";
import { reduceSum } from "./reduce.js";
import { concat, dimAt, reshape, split, zeros } from "./shape.js";

/**
 * A convolution of each channel with a kernel of its own, [sequences, channels, length], that sees no later values:
 * `result[t] = sum over j of kernel[j] * value[t - K + 1 + j]`. Before the beginning lie zeros, or the values of
 * `before`, [sequences, channels, K - 1].
 */
export function causalConvolution(value: Tensor, kernel: Tensor, before?: Tensor): Tensor {
  const size = dimAt(kernel, 2).constant;
  if (size === undefined) throw new Error("a kernel must have a fixed size");
  return before === undefined
    ? convolve(value, kernel, size - 1, 0)
    : convolve(concat([before, value], 2), kernel, 0, 0);
}

function convolve(value: Tensor, kernel: Tensor, left: number, right: number): Tensor {
  const [channels, size] = [dimAt(kernel, 0).constant, dimAt(kernel, 2).constant];
  if (channels === undefined || size === undefined) throw new Error("a kernel must be fixed");
  const length = dimAt(value, 2).plus(left + right - size + 1);
  const shape = shapeOf([dimAt(value, 0), channels, length]);
  return value.graph.applyOne({
    type: "Conv",
    inputs: [value, kernel],
    attributes: { group: channels, pads: [left, right], kernel_shape: [size] },
    shape,
    vjp: ([gradient], wants) => {
      if (gradient === undefined) return [];
      return [
        wants(0)
          ? convolve(gradient, reversed(kernel, size), size - 1 - left, size - 1 - right)
          : undefined,
        wants(1) ? ofKernel(gradient) : undefined,
      ];
    },
  });

  function ofKernel(gradient: Tensor): Tensor {
    const padding = (count: number): readonly Tensor[] =>
      count === 0 ? [] : [zeros(value, shapeOf([dimAt(value, 0), dimAt(value, 1), count]))];
    const padded = concat([...padding(left), value, ...padding(right)], 2);
    const parts = Array.from({ length: size ?? 0 }, (_, tap) => {
      const sizes = [tap, length, (size ?? 0) - 1 - tap].filter((part) => part !== 0);
      const seen = split(padded, 2, sizes)[tap === 0 ? 0 : 1];
      if (seen === undefined) throw new Error("a kernel reaches beyond its values");
      return reshape(reduceSum(multiply(seen, gradient), [0, 2]), [dimAt(kernel, 0), 1, 1]);
    });
    return concat(parts, 2);
  }
}

function reversed(kernel: Tensor, size: number): Tensor {
  if (size === 1) return kernel;
  const taps = split(
    kernel,
    2,
    Array.from({ length: size }, () => 1),
  );
  return concat(taps.toReversed(), 2);
}
