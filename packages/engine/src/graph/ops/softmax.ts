import type { Tensor } from "../tensor.js";
import { exp, multiply, negate, subtract } from "./elementwise.js";
import { reduceSum } from "./reduce.js";

/** Softmax over the last axis. */
export function softmax(value: Tensor): Tensor {
  const lastAxis = value.shape.length - 1;
  const result: Tensor = value.graph.applyOne({
    type: "Softmax",
    inputs: [value],
    attributes: { axis: -1 },
    shape: value.shape,
    vjp: ([gradient]) => {
      if (gradient === undefined) return [];
      const weighted = multiply(gradient, result);
      return [subtract(weighted, multiply(result, reduceSum(weighted, [lastAxis])))];
    },
  });
  return result;
}

/** Logarithm of the softmax over the last axis; inference only. */
export function logSoftmax(value: Tensor): Tensor {
  return value.graph.applyOne({
    type: "LogSoftmax",
    inputs: [value],
    attributes: { axis: -1 },
    shape: value.shape,
  });
}

/**
 * `log softmax(logits)[row, targets[row, k]]` for logits [rows, vocabulary] and targets [rows, k].
 *
 * The gradient, softmax minus one-hot, skips the step over the whole table of log-probabilities: the k
 * entries of each row are added into the scaled probabilities, which ONNX Runtime does in place.
 */
export function targetLogprobs(logits: Tensor, targets: Tensor): Tensor {
  const { graph } = logits;
  const { shape } = logits;
  const attributes = { axis: 1 };
  const logprobs = logSoftmax(logits);
  return graph.applyOne({
    type: "GatherElements",
    inputs: [logprobs, targets],
    gradientInputs: [logits],
    attributes,
    shape: targets.shape,
    vjp: ([gradient]) => {
      if (gradient === undefined) return [];
      const pull = multiply(exp(logprobs), negate(reduceSum(gradient, [1])));
      const inputs = [pull, targets, gradient];
      return [
        graph.applyOne({
          type: "ScatterElements",
          inputs,
          attributes: { ...attributes, reduction: "add" },
          shape,
        }),
      ];
    },
  });
}
