import { Dim } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { add, multiply, negate, scale, subtract } from "./elementwise.js";
import { dimAt, expand, reshape, split } from "./shape.js";

/** A frozen weight in 8 bits: the matrix `values * scale`, with one scale per output. */
export interface Int8Weight {
  /** int8, [inputs, outputs]: factor of the forward pass. */
  readonly values: Tensor;
  /** int8, [outputs, inputs]: the same numbers, for the gradient of the input. */
  readonly transposed: Tensor;
  /** [outputs] */
  readonly scale: Tensor;
  readonly format: Int8Digits;
  /** Quantization of gradients. */
  readonly gradientFormat: Int8Digits;
  /**
   * Whether all digits of a value are multiplied in one product, with the same result: the weight is then read
   * once, which dominates the time of a product with few rows. @default false
   */
  readonly readOnce?: boolean;
}

/** Quantization of values to integers before a product. */
export interface Int8Digits {
  /** Each further one is 128 or 256 times as fine as the one before, and costs a product. */
  readonly digits: 1 | 2 | 3;
  /** 7 where a processor's sums of products of 8 bits could overflow. */
  readonly bits: 7 | 8;
}

/** Rows in whole numbers: `scale` times the sum of `digits[i] / base ** i`, where digits count from a zero point. */
interface QuantizedRows {
  readonly digits: readonly Tensor[];
  /** [rows, 1] */
  readonly scale: Tensor;
}

/**
 * `value @ (values * scale)` for a weight of 8 bits and rows of `value` that are written in whole numbers,
 * each in a scale of its own. Sums of such products are exact: a row's result depends neither on the
 * other rows nor on the order of summation.
 */
export function int8Linear(value: Tensor, weight: Int8Weight): Tensor {
  const product = weight.readOnce === true ? stackedProduct : rowProduct;
  const { sum, rowScale } = product(value, weight.values, weight.scale, weight.format);
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

/** The matrix itself in 32 bits, [outputs, inputs]; nothing asks for its gradient. */
export function widened({ transposed, scale: columnScale }: Int8Weight): Tensor {
  return transposed.graph.applyOne({
    type: "DequantizeLinear",
    inputs: [transposed, columnScale],
    attributes: { axis: 0 },
    shape: transposed.shape,
  });
}

/** The product up to the factor of each row. */
function rowProduct(
  value: Tensor,
  matrix: Tensor,
  columnScale: Tensor,
  format: Int8Digits,
): { readonly sum: Tensor; readonly rowScale: Tensor } {
  return digitProducts(quantizeRows(value, format, false), matrix, columnScale, format);
}

function digitProducts(
  { digits, scale: rowScale }: QuantizedRows,
  matrix: Tensor,
  columnScale: Tensor,
  format: Int8Digits,
): { readonly sum: Tensor; readonly rowScale: Tensor } {
  const products = digits.map((digit, place) =>
    digitProduct(digit, matrix, worth(place, format), columnScale, format),
  );
  return { sum: products.reduce((sum, product) => add(sum, product)), rowScale };
}

/** The same to the bit, with further digits as further rows: the weight of a digit is a power of two. */
function stackedProduct(
  value: Tensor,
  matrix: Tensor,
  columnScale: Tensor,
  format: Int8Digits,
): { readonly sum: Tensor; readonly rowScale: Tensor } {
  const rows = quantizeRows(value, format, true);
  if (rows.digits.length === 1) return digitProducts(rows, matrix, columnScale, format);
  const count = dimAt(value, 0);
  const product = digitProduct(stackedDigits(rows), matrix, 1, columnScale, format);
  const parts = split(
    product,
    0,
    Array.from(rows.digits, () => count),
  );
  const sum = parts.reduce((total, part, place) => add(total, scale(part, worth(place, format))));
  return { sum, rowScale: rows.scale };
}

function digitProduct(
  digits: Tensor,
  matrix: Tensor,
  factor: number,
  columnScale: Tensor,
  format: Int8Digits,
): Tensor {
  const { graph } = digits;
  return graph.applyOne({
    type: "MatMulIntegerToFloat",
    domain: "com.microsoft",
    inputs: [digits, matrix, graph.scalar(factor), columnScale, graph.byte(zeroPoint(format))],
    shape: [dimAt(digits, 0), dimAt(matrix, 1)],
  });
}

const knownStacks = new WeakMap<QuantizedRows, Tensor>();

/** All digits one below the other, [digits * rows, columns]. */
function stackedDigits(rows: QuantizedRows): Tensor {
  const found = knownStacks.get(rows);
  if (found !== undefined) return found;
  const { digits } = rows;
  const [first] = digits;
  if (first === undefined) throw new Error("there are no digits");
  const stacked = first.graph.applyOne({
    type: "Concat",
    inputs: digits,
    attributes: { axis: 0 },
    shape: [dimAt(first, 0).times(digits.length), dimAt(first, 1)],
    dtype: "uint8",
  });
  knownStacks.set(rows, stacked);
  return stacked;
}

/** Layers that read the same value share its digits. */
const known = new WeakMap<Tensor, { readonly format: Int8Digits; readonly rows: QuantizedRows }>();

function quantizeRows(value: Tensor, format: Int8Digits, isShort: boolean): QuantizedRows {
  const found = known.get(value);
  if (found?.format.digits === format.digits && found.format.bits === format.bits) {
    return found.rows;
  }
  const rows = writeRows(value, format, isShort);
  known.set(value, { format, rows });
  return rows;
}

function writeRows(value: Tensor, format: Int8Digits, isShort: boolean): QuantizedRows {
  const { graph } = value;
  const count = dimAt(value, 0);
  // A row of zeros has a scale of zero, so that its result is zero for any digits.
  const rowScale = scale(largest(value, isShort), 1 / largestDigit(format));
  const zeros = expand(graph.byte(zeroPoint(format), [1]), [count]);
  const write = (values: Tensor, step: Tensor): Tensor =>
    graph.applyOne({
      type: "QuantizeLinear",
      inputs: [values, reshape(step, [count]), zeros],
      attributes: { axis: 0 },
      shape: value.shape,
      dtype: "uint8",
    });
  const read = (digit: Tensor, step: Tensor): Tensor =>
    graph.applyOne({
      type: "DequantizeLinear",
      inputs: [digit, reshape(step, [count]), zeros],
      attributes: { axis: 0 },
      shape: value.shape,
    });
  let [rest, step, digit] = [value, rowScale, write(value, rowScale)];
  const digits = [digit];
  while (digits.length < format.digits) {
    rest = subtract(rest, read(digit, step));
    step = scale(rowScale, worth(digits.length, format));
    digit = write(rest, step);
    digits.push(digit);
  }
  return { digits, scale: rowScale };
}

/** The largest absolute value of each row, [rows, 1]. */
function largest(value: Tensor, isShort: boolean): Tensor {
  const { graph } = value;
  const column = [dimAt(value, 0), Dim.of(1)];
  const extreme = (type: "ReduceMax" | "ReduceMin", of: Tensor): Tensor =>
    graph.applyOne({
      type,
      inputs: [of],
      attributes: { axes: [1], keepdims: 1 },
      shape: column,
    });
  if (isShort) {
    const absolute = graph.applyOne({ type: "Abs", inputs: [value], shape: value.shape });
    return extreme("ReduceMax", absolute);
  }
  // Of many rows two readings are quicker than writing absolute values first.
  const bounds = [extreme("ReduceMax", value), negate(extreme("ReduceMin", value))];
  return graph.applyOne({ type: "Max", inputs: bounds, shape: column });
}

/** Zero point: digits are unsigned, and their value is the distance from this. */
function zeroPoint({ bits }: Int8Digits): number {
  return 2 ** (bits - 1);
}

/**
 * The largest distance from the zero point. Pairs of products are added in 16 bits where digits have 7, which have room for
 * 128 * 127 twice; of 8 bits there is none for 256.
 */
function largestDigit({ bits }: Int8Digits): number {
  return bits === 7 ? 64 : 127;
}

/**
 * The weight of a digit in steps of the first. The remainder after a digit is half a step at most; a power of two
 * divides it without rounding, and the few values of 8 bits that are half a step larger are off by one.
 */
function worth(place: number, { bits }: Int8Digits): number {
  return 2 ** (-bits * place);
}
