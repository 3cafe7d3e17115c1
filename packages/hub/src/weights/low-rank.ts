import { setImmediate as nextTurn } from "node:timers/promises";

/** A matrix as the product of two thin ones: B [rows, rank] times A [rank, columns], times `scale`. */
export interface LowRankUpdate {
  readonly a: Float32Array;
  readonly b: Float32Array;
  readonly rank: number;
  readonly scale: number;
}

/** Where in an array the first element of the matrix lies, and the distances to the next row and column. */
export interface MatrixPlace {
  readonly first: number;
  readonly rowStep: number;
  readonly columnStep: number;
}

/** Multiplications between two turns of the event loop: some ten milliseconds. */
const workPerTurn = 1 << 24;

/**
 * Adds an update to a matrix in place: to the whole of `target` as [rows, columns], or to the elements of a place.
 *
 * Sums run in double precision and are rounded once. Four rows of A are taken at a time, which
 * loads and stores the running sum a quarter as often.
 */
export async function addLowRank(
  target: Float32Array,
  update: LowRankUpdate,
  options: { readonly place?: MatrixPlace; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const { rank, scale, b } = update;
  const columns = update.a.length / rank;
  const rows = b.length / rank;
  const { signal, place = { first: 0, rowStep: columns, columnStep: 1 } } = options;
  const paddedRank = Math.ceil(rank / 4) * 4;
  const a = new Float64Array(paddedRank * columns);
  a.set(update.a);
  const rowOfA = (k: number) => a.subarray(k * columns, (k + 1) * columns);
  const rowsOfA = Array.from({ length: paddedRank }, (_, k) => rowOfA(k));
  const sum = new Float64Array(columns);
  const rowsPerTurn = Math.max(1, Math.floor(workPerTurn / (rank * columns)));
  for (let row = 0; row < rows; row++) {
    if (row % rowsPerTurn === 0) {
      await nextTurn();
      signal?.throwIfAborted();
    }
    sum.fill(0);
    for (let k = 0; k < rank; k += 4) {
      addFourRows(sum, rowsOfA, k, b.subarray(row * rank, (row + 1) * rank));
    }
    let element = place.first + row * place.rowStep;
    for (let i = 0; i < columns; i++, element += place.columnStep) {
      target[element] = target[element]! + scale * sum[i]!;
    }
  }
}

function addFourRows(
  sum: Float64Array,
  rows: readonly Float64Array[],
  first: number,
  factors: Float32Array,
): void {
  const [row0, row1, row2, row3] = rows.slice(first, first + 4);
  const [f0 = 0, f1 = 0, f2 = 0, f3 = 0] = factors.subarray(first, first + 4);
  if (!row0 || !row1 || !row2 || !row3) return;
  for (let i = 0; i < sum.length; i++) {
    sum[i] = sum[i]! + f0 * row0[i]! + f1 * row1[i]! + f2 * row2[i]! + f3 * row3[i]!;
  }
}
