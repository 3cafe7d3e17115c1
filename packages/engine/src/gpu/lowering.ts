import type { LoweringRule } from "../graph/compile.js";
import type { NodeRecord } from "../graph/onnx/model-proto.js";

// Operators are rewritten when a model is written for a device. Graphs and their gradients do not depend on
// it: one graph serves all devices, and is tested once.

/**
 * WebGPU's norm gives the mean of its input where the inverse of the root mean square belongs. That output is
 * computed apart, where anything reads it.
 */
export const normStatistics: LoweringRule = {
  name: "norm statistics",
  lower({ type, inputs }, record, scope) {
    if (type !== "SimplifiedLayerNormalization" || !scope.isRead(1)) return undefined;
    const [value = "", weight = ""] = record.inputs;
    const [normalized = "", inverse = ""] = record.outputs;
    const width = inputs[0]?.shape.at(-1)?.constant;
    const { epsilon } = record.attributes;
    if (width === undefined || typeof epsilon !== "object" || !("float" in epsilon)) {
      throw new Error("a norm needs a fixed width and an epsilon");
    }
    const [squares, mean, shifted, root] = [
      scope.fresh(),
      scope.fresh(),
      scope.fresh(),
      scope.fresh(),
    ];
    return [
      { ...record, inputs: [value, weight], outputs: [normalized] },
      plain("ReduceSumSquare", [value], squares, { axes: [-1], keepdims: 1 }),
      plain("Mul", [squares, scope.scalar(1 / width)], mean),
      plain("Add", [mean, scope.scalar(epsilon.float)], shifted),
      plain("Sqrt", [shifted], root),
      plain("Reciprocal", [root], inverse),
    ];
  },
};

/** WebGPU has no product with transposed operands and a factor; it would be computed on the processor. */
export const fusedProducts: LoweringRule = {
  name: "fused products",
  lower({ type, inputs }, record, scope) {
    if (type !== "FusedMatMul") return undefined;
    const { transA, transB, alpha } = record.attributes;
    const records: NodeRecord[] = [];
    const operands = record.inputs.map((name, index) => {
      if ((index === 0 ? transA : transB) !== 1) return name;
      const rank = inputs[index]?.shape.length ?? 0;
      const order = Array.from({ length: rank }, (_, axis) => axis);
      const swapped = [...order.slice(0, -2), rank - 1, rank - 2];
      const turned = scope.fresh();
      records.push(plain("Transpose", [name], turned, { perm: swapped }));
      return turned;
    });
    const [result = ""] = record.outputs;
    const factor = typeof alpha === "object" && "float" in alpha ? alpha.float : 1;
    const product = factor === 1 ? result : scope.fresh();
    records.push(plain("MatMul", operands, product));
    if (factor !== 1) records.push(plain("Mul", [product, scope.scalar(factor)], result));
    return records;
  },
};

/** WebGPU has no logarithm of a softmax; it would be computed on the processor. */
export const logSoftmaxes: LoweringRule = {
  name: "log softmax",
  lower({ type }, record, scope) {
    if (type !== "LogSoftmax") return undefined;
    const [value = ""] = record.inputs;
    const [result = ""] = record.outputs;
    const [most, shifted, powers] = [scope.fresh(), scope.fresh(), scope.fresh()];
    const [sum, logarithm] = [scope.fresh(), scope.fresh()];
    return [
      plain("ReduceMax", [value], most, { axes: [-1], keepdims: 1 }),
      plain("Sub", [value, most], shifted),
      plain("Exp", [shifted], powers),
      plain("ReduceSum", [powers, scope.axis(-1)], sum, { keepdims: 1 }),
      plain("Log", [sum], logarithm),
      plain("Sub", [shifted, logarithm], result),
    ];
  },
};

function plain(
  type: string,
  inputs: readonly string[],
  output: string,
  attributes: NodeRecord["attributes"] = {},
): NodeRecord {
  return { type, domain: "", inputs, outputs: [output], attributes };
}
