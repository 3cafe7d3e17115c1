import { shapeOf } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { add, multiply, subtract } from "./elementwise.js";
import { batchMatmul } from "./matmul.js";
import { reduceSum } from "./reduce.js";
import { dimAt, reshape } from "./shape.js";

/** Operands of `maskedAttention`. */
export interface AttentionOperands {
  /** [batch, keyHeads, group * queries, headDim]: several query heads may share one key head. */
  readonly query: Tensor;
  /** [batch, keyHeads, keys, headDim] */
  readonly key: Tensor;
  /** [batch, keyHeads, keys, headDim] */
  readonly value: Tensor;
  /** [queries, keys], added to the scores of every head. */
  readonly mask: Tensor;
  /** Query heads per key head. */
  readonly group: number;
  readonly scale: number;
  /** The result, if it is available to the gradient. @default the result itself */
  readonly recall?: () => Tensor;
}

/**
 * `softmax(scale * query @ key^T + mask) @ value` over stacks of matrices.
 *
 * The gradient uses that the row sums of (gradient of probabilities) x probabilities equal those of
 * (gradient of result) x result, which is far smaller than the scores.
 */
export function maskedAttention(operands: AttentionOperands): Tensor {
  const { query, key, value, mask, group, scale, recall } = operands;
  const { graph, shape } = query;
  const stack = shape.slice(0, 2);
  const [queries, keys] = [dimAt(mask, 0), dimAt(mask, 1)];
  const scores = batchMatmul(query, key, { transposeRight: true, scale });
  const perHead = shapeOf([...stack, group, queries, keys]);
  const masked = add(reshape(scores, perHead), mask);
  const probabilities = reshape(
    graph.applyOne({ type: "Softmax", inputs: [masked], attributes: { axis: -1 }, shape: perHead }),
    scores.shape,
  );
  const result: Tensor = graph.applyOne({
    type: "FusedMatMul",
    domain: "com.microsoft",
    inputs: [probabilities, value],
    gradientInputs: [query, key, value],
    shape,
    vjp: ([gradient], wants) => {
      if (gradient === undefined) return [];
      const ofValue = batchMatmul(probabilities, gradient, { transposeLeft: true });
      if (!wants(0) && !wants(1)) return [undefined, undefined, ofValue];
      const ofProbabilities = batchMatmul(gradient, value, { transposeRight: true });
      const rowSums = reduceSum(multiply(gradient, recall?.() ?? result), [3]);
      const ofScores = multiply(probabilities, subtract(ofProbabilities, rowSums));
      return [
        wants(0) ? batchMatmul(ofScores, key, { scale }) : undefined,
        wants(1) ? batchMatmul(ofScores, query, { transposeLeft: true, scale }) : undefined,
        wants(2) ? ofValue : undefined,
      ];
    },
  });
  return result;
}
