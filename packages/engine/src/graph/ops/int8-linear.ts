import { Dim } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { add, multiply, negate, scale, subtract } from "./elementwise.js";
import { dimAt, expand, reshape } from "./shape.js";

/** A frozen weight in 8 bits: the matrix `values * scale`, with one scale per output. */
export interface Int8Weight {
  /** int8, [inputs, outputs]: what the way forwards multiplies by. */
  readonly values: Tensor;
  /** int8, [outputs, inputs]: the same numbers, for the gradient of what was multiplied. */
  readonly transposed: Tensor;
  /** [outputs] */
  readonly scale: Tensor;
  readonly format: Int8Digits;
  /** How gradients are written. */
  readonly gradientFormat: Int8Digits;
}

/** How values are written in whole numbers before they are multiplied. */
export interface Int8Digits {
  /** Two are some 250 times as fine as one, and cost a second product. */
  readonly digits: 1 | 2;
  /** 7 where a processor's sums of products of 8 bits could overflow. */
  readonly bits: 7 | 8;
}

/** Rows in whole numbers: `scale * (digits[0] + digits[1] / step)`, where digits count from a zero point. */
interface QuantizedRows {
  readonly digits: readonly Tensor[];
  /** [rows, 1] */
  readonly scale: Tensor;
}

/**
 * `value @ (values * scale)` for a weight of 8 bits and rows of `value` that are written in whole numbers,
 * each in a scale of its own. Sums of such products are exact: a row's result depends neither on its
 * company nor on the order of summation.
 */
export function int8Linear(value: Tensor, weight: Int8Weight): Tensor {
  const { sum, rowScale } = rowProduct(value, weight.values, weight.scale, weight.format);
  return value.graph.applyOne({
    type: "Mul",
    inputs: [sum, rowScale],
    gradientInputs: [value],
    shape: sum.shape,
    isDear: true,
    // The scales of outputs become part of the gradient, so that the same values serve both ways.
    vjp: ([gradient], wants) => {
      if (gradient === undefined || !wants(0)) return [];
      const scaled = multiply(gradient, weight.scale);
      const one = value.graph.scalar(1);
      const back = rowProduct(scaled, weight.transposed, one, weight.gradientFormat);
      return [multiply(back.sum, back.rowScale)];
    },
  });
}

/** The product up to the factor of each row. */
function rowProduct(
  value: Tensor,
  matrix: Tensor,
  columnScale: Tensor,
  format: Int8Digits,
): { readonly sum: Tensor; readonly rowScale: Tensor } {
  const { graph } = value;
  const { digits, scale: rowScale } = quantizeRows(value, format);
  const products = digits.map((digit, index) =>
    graph.applyOne({
      type: "MatMulIntegerToFloat",
      domain: "com.microsoft",
      inputs: [
        digit,
        matrix,
        graph.scalar(index === 0 ? 1 : 1 / secondStep(format)),
        columnScale,
        graph.byte(zeroPoint(format)),
      ],
      shape: [dimAt(value, 0), dimAt(matrix, 1)],
    }),
  );
  return { sum: products.reduce((sum, product) => add(sum, product)), rowScale };
}

/** Layers that read the same value share its digits. */
const known = new WeakMap<Tensor, { readonly format: Int8Digits; readonly rows: QuantizedRows }>();

function quantizeRows(value: Tensor, format: Int8Digits): QuantizedRows {
  const found = known.get(value);
  if (found?.format.digits === format.digits) return found.rows;
  const rows = writeRows(value, format);
  known.set(value, { format, rows });
  return rows;
}

/** Rows whose largest value is smaller count as zeros. */
const smallest = 1e-30;

function writeRows(value: Tensor, format: Int8Digits): QuantizedRows {
  const { graph } = value;
  const count = dimAt(value, 0);
  const column = [count, Dim.of(1)];
  const extreme = (type: "ReduceMax" | "ReduceMin"): Tensor =>
    graph.applyOne({
      type,
      inputs: [value],
      attributes: { axes: [1], keepdims: 1 },
      shape: column,
    });
  // Two readings are quicker than writing absolute values first.
  const bounds = [extreme("ReduceMax"), negate(extreme("ReduceMin")), graph.scalar(smallest)];
  const bounded = graph.applyOne({ type: "Max", inputs: bounds, shape: column });
  const rowScale = scale(bounded, 1 / largestDigit(format));
  const zeros = expand(graph.byte(zeroPoint(format), [1]), [count]);
  const write = (values: Tensor, steps: Tensor): Tensor =>
    graph.applyOne({
      type: "QuantizeLinear",
      inputs: [values, reshape(steps, [count]), zeros],
      attributes: { axis: 0 },
      shape: value.shape,
      dtype: "uint8",
    });
  const first = write(value, rowScale);
  if (format.digits === 1) return { digits: [first], scale: rowScale };
  const read = graph.applyOne({
    type: "DequantizeLinear",
    inputs: [first, reshape(rowScale, [count]), zeros],
    attributes: { axis: 0 },
    shape: value.shape,
  });
  const second = write(subtract(value, read), scale(rowScale, 1 / secondStep(format)));
  return { digits: [first, second], scale: rowScale };
}

/** Digits are unsigned and stand for their distance from this. */
function zeroPoint({ bits }: Int8Digits): number {
  return 2 ** (bits - 1);
}

function largestDigit({ bits }: Int8Digits): number {
  return 2 ** (bits - 1) - 1;
}

/** Steps of the second digit in one of the first: what the first leaves is half a step at most. */
function secondStep(format: Int8Digits): number {
  return 2 * largestDigit(format);
}
