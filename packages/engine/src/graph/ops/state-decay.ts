import { Dim } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { add, divide, multiply, sigmoid } from "./elementwise.js";
import { reduceSum } from "./reduce.js";
import { dimAt, reshape } from "./shape.js";
import { at } from "../../util/arrays.js";

/**
 * `factor * softplus(value + bias)` for rows [tokens, heads]; factors and biases are per head.
 *
 * The runtime's own softplus rounds a number differently at the end of an array, so that a row's result would depend on
 * the other rows. This operator computes the rows one by one.
 */
export function stateDecay(value: Tensor, bias: Tensor, factor: Tensor): Tensor {
  const { graph, shape } = value;
  const stacked = [Dim.of(1), ...shape];
  const rows = reshape(value, stacked);
  // The second output, which nothing reads, is the logistic function of the last input.
  const outputs = graph.apply({
    type: "LinearAttentionGate",
    domain: "com.microsoft",
    inputs: [rows, bias, factor, rows],
    outputs: [{ shape: stacked }, { shape: stacked }],
    gradientInputs: [rows, bias, factor],
    vjp: ([gradient], wants) => {
      if (gradient === undefined) return [];
      const ofSum = (): Tensor => {
        const slope = multiply(factor, sigmoid(add(rows, bias)));
        return multiply(gradient, slope);
      };
      const perHead = (values: Tensor): Tensor =>
        reshape(reduceSum(values, [0, 1]), [dimAt(bias, 0)]);
      return [
        wants(0) ? ofSum() : undefined,
        wants(1) ? perHead(ofSum()) : undefined,
        wants(2) ? divide(perHead(multiply(gradient, at(outputs, 0))), factor) : undefined,
      ];
    },
  });
  return reshape(at(outputs, 0), shape);
}
