import { Dim, sizeOf } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { at } from "../../util/arrays.js";
import { multiply, scale, subtract } from "./elementwise.js";
import { reduceSum } from "./reduce.js";
import { dimAt, reshape } from "./shape.js";

/** RMS normalisation over the last axis, which must have a fixed size. */
export function rmsNorm(value: Tensor, weight: Tensor, epsilon: number): Tensor {
  const lastAxis = value.shape.length - 1;
  const leading = value.shape.slice(0, lastAxis);
  const width = fixedWidth(value, lastAxis);
  const outputs = value.graph.apply({
    type: "SimplifiedLayerNormalization",
    inputs: [value, weight],
    attributes: { axis: -1, epsilon: { float: epsilon }, stash_type: 1 },
    outputs: [{ shape: value.shape }, { shape: [...leading, Dim.of(1)] }],
    vjp: ([gradient], wants) =>
      gradient === undefined
        ? []
        : [wants(0) ? ofValue(gradient) : undefined, wants(1) ? ofWeight(gradient) : undefined],
  });
  const [normalized, inverseDeviation] = [at(outputs, 0), at(outputs, 1)];

  /** inverse * gradient * weight - value * inverse^2 * mean(gradient * normalized) */
  function ofValue(gradient: Tensor): Tensor {
    const mean = scale(reduceSum(multiply(gradient, normalized), [lastAxis]), 1 / width);
    const pull = multiply(multiply(inverseDeviation, inverseDeviation), mean);
    const direct = multiply(multiply(gradient, weight), inverseDeviation);
    return subtract(direct, multiply(value, pull));
  }

  function ofWeight(gradient: Tensor): Tensor {
    const terms = multiply(gradient, multiply(value, inverseDeviation));
    const flat = reshape(terms, [sizeOf(leading), width]);
    return reshape(reduceSum(flat, [0]), weight.shape);
  }

  return normalized;
}

function fixedWidth(value: Tensor, axis: number): number {
  const width = dimAt(value, axis).constant;
  if (width === undefined) throw new Error("rmsNorm needs a fixed last axis");
  return width;
}
