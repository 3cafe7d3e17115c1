import { ArgumentError } from "../errors/argument-error.js";
import type { TensorStorage } from "./tensor-data.js";

/** A matrix in compressed sparse row form. */
export interface Csr {
  readonly values: TensorStorage;
  /** Row r is `values[crow[r]] .. values[crow[r + 1]]`. */
  readonly crowIndices: Int32Array;
  readonly colIndices: Int32Array;
}

/** The CSR form of a dense matrix, or undefined when it would not save space. */
export function denseToCsr(
  data: TensorStorage,
  [rows, columns]: readonly [number, number],
): Csr | undefined {
  let stored = 0;
  for (const value of data) if (Number(value) !== 0) stored++;
  if (rows + 1 + 2 * stored >= rows * columns) return undefined;

  const positions = new Int32Array(stored);
  const crowIndices = new Int32Array(rows + 1);
  const colIndices = new Int32Array(stored);
  let next = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const position = row * columns + column;
      if (Number(data[position]) === 0) continue;
      positions[next] = position;
      colIndices[next] = column;
      next++;
    }
    crowIndices[row + 1] = next;
  }
  return { values: pick(data, positions), crowIndices, colIndices };
}

/** The dense values of a CSR matrix. */
export function csrToDense(
  values: TensorStorage,
  crowIndices: Int32Array,
  colIndices: Int32Array,
  [rows, columns]: readonly [number, number],
): TensorStorage {
  const dense = allocateLike(values, rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let index = crowIndices[row]!; index < crowIndices[row + 1]!; index++) {
      dense[row * columns + colIndices[index]!] = values[index]!;
    }
  }
  return dense;
}

/** Throws unless the index lists describe a matrix of this shape with this many stored values. */
export function validateCsr(
  stored: number,
  crowIndices: Int32Array,
  colIndices: Int32Array,
  shape: readonly number[] | null,
): void {
  const [rows, columns] = shape ?? [];
  if (shape?.length !== 2 || rows === undefined || columns === undefined) {
    throw new ArgumentError("shape", "a sparse tensor needs a shape of two dimensions");
  }
  if (colIndices.length !== stored) {
    throw new ArgumentError(
      "sparse_col_indices",
      `${colIndices.length} columns do not match ${stored} values`,
    );
  }
  const isStaircase =
    crowIndices.length === rows + 1 &&
    crowIndices[0] === 0 &&
    crowIndices[rows] === stored &&
    crowIndices.every((start, row) => row === 0 || start >= crowIndices[row - 1]!);
  if (!isStaircase) {
    throw new ArgumentError(
      "sparse_crow_indices",
      `must be ${rows + 1} row starts that grow from 0 to ${stored}`,
    );
  }
  if (colIndices.some((column) => column < 0 || column >= columns)) {
    throw new ArgumentError("sparse_col_indices", `columns must be within 0..${columns - 1}`);
  }
}

function pick(data: TensorStorage, positions: Int32Array): TensorStorage {
  const picked = allocateLike(data, positions.length);
  positions.forEach((position, index) => {
    picked[index] = data[position]!;
  });
  return picked;
}

// Typed so that values of one storage can be written into another of the same kind.
function allocateLike(
  data: TensorStorage,
  length: number,
): TensorStorage & { [index: number]: number | bigint } {
  if (data instanceof BigInt64Array) return new BigInt64Array(length);
  return data instanceof Int32Array ? new Int32Array(length) : new Float32Array(length);
}
