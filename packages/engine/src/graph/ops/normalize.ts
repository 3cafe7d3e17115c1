import { Dim, sizeOf } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { multiply, scale, subtract } from "./elementwise.js";
import { reduceSum } from "./reduce.js";
import { dimAt, reshape } from "./shape.js";

/** RMS normalisation over the last axis, which must have a fixed size. */
export function rmsNorm(value: Tensor, weight: Tensor, epsilon: number): Tensor {
  const { graph } = value;
  const lastAxis = value.shape.length - 1;
  const width = dimAt(value, lastAxis).constant;
  if (width === undefined) throw new Error("rmsNorm needs a fixed last axis");
  const perRow = [...value.shape.slice(0, lastAxis), Dim.of(1)];
  const [normalized, inverseDeviation] = graph.apply({
    type: "SimplifiedLayerNormalization",
    inputs: [value, weight],
    attributes: { axis: -1, epsilon: { float: epsilon }, stash_type: 1 },
    outputs: [{ shape: value.shape }, { shape: perRow }],
    vjp: ([gradient], wants) => {
      if (gradient === undefined || inverseDeviation === undefined) return [];
      const unit = multiply(value, inverseDeviation);
      return [
        wants(0) ? ofValue(gradient, unit) : undefined,
        wants(1) ? ofWeight(gradient, unit) : undefined,
      ];
    },
  });
  if (normalized === undefined || inverseDeviation === undefined) throw new Error("unreachable");

  function ofValue(gradient: Tensor, unit: Tensor): Tensor {
    const weighted = multiply(gradient, weight);
    const mean = scale(reduceSum(multiply(weighted, unit), [lastAxis]), 1 / (width ?? 1));
    return multiply(inverseDeviation ?? unit, subtract(weighted, multiply(unit, mean)));
  }

  function ofWeight(gradient: Tensor, unit: Tensor): Tensor {
    const rows = sizeOf(value.shape.slice(0, lastAxis));
    const flat = reshape(multiply(gradient, unit), [rows, width ?? 1]);
    return reshape(reduceSum(flat, [0]), weight.shape);
  }

  return normalized;
}
