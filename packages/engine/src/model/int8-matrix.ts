import { EngineError } from "../errors.js";

/** A matrix in 8 bits: row r is `scale[r]` times its integers, from -127 to 127. */
export interface Int8Matrix {
  /** [rows, columns] */
  readonly values: Int8Array;
  /** [rows] */
  readonly scale: Float32Array;
  /** [rows, columns]: an optional second digit: the remainder of `values` in steps of `scale / 254`. */
  readonly rest?: Int8Array;
}

/** Steps of the second digit in one of the first. */
export const restSteps = 254;

const largestValue = 127;

/** The nearest matrix in 8 bits, or, with a second digit, in nearly 16. */
export function toInt8(
  name: string,
  floats: Float32Array,
  rows: number,
  withRest = false,
): Int8Matrix {
  const columns = floats.length / rows;
  const values = new Int8Array(floats.length);
  const scale = new Float32Array(rows);
  const rest = withRest ? new Int8Array(floats.length) : undefined;
  for (let row = 0; row < rows; row++) {
    const [start, end] = [row * columns, (row + 1) * columns];
    let largest = 0;
    for (let i = start; i < end; i++) {
      const size = Math.abs(floats[i] ?? 0);
      // Written so that NaN is caught too.
      if (!(size <= largest)) largest = size;
    }
    if (!Number.isFinite(largest)) {
      throw new EngineError("not_finite", `The tensor "${name}" holds a value that is not finite.`);
    }
    if (largest === 0) continue;
    scale[row] = largest / largestValue;
    const inverse = largestValue / largest;
    for (let i = start; i < end; i++) {
      values[i] = rounded((floats[i] ?? 0) * inverse);
    }
    if (rest === undefined) continue;
    for (let i = start; i < end; i++) {
      rest[i] = rounded(((floats[i] ?? 0) * inverse - (values[i] ?? 0)) * restSteps);
    }
  }
  return { values, scale, ...(rest === undefined ? {} : { rest }) };
}

/** Adds half a step, so that truncation on storing rounds to nearest. */
function rounded(value: number): number {
  return value < 0 ? value - 0.5 : value + 0.5;
}

const transposedTile = 64;

/** The values of a matrix with rows and columns exchanged. */
export function transposedValues(values: Int8Array, rows: number): Int8Array {
  const columns = values.length / rows;
  const result = new Int8Array(values.length);
  for (let top = 0; top < rows; top += transposedTile) {
    const bottom = Math.min(rows, top + transposedTile);
    for (let left = 0; left < columns; left += transposedTile) {
      const right = Math.min(columns, left + transposedTile);
      for (let column = left; column < right; column++) {
        for (let row = top; row < bottom; row++) {
          result[column * rows + row] = values[row * columns + column] ?? 0;
        }
      }
    }
  }
  return result;
}
