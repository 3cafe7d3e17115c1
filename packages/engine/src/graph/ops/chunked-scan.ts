import { describeShape } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { add, exp, multiply, negate, subtract } from "./elementwise.js";
import { batchMatmul } from "./matmul.js";
import { concat, dimAt, reshape, split } from "./shape.js";

/**
 * Operands of `chunkedScan`. Sequences are cut into chunks of `size` tokens, all of one size; `heads` counts the
 * heads of keys of all sequences, of which each serves `group` heads of values.
 */
export interface ChunkedScanOperands {
  /** [chunks, heads, 1, size, keyDim] */
  readonly query: Tensor;
  /** [chunks, heads, 1, size, keyDim] */
  readonly key: Tensor;
  /** [chunks, heads, group, size, valueDim] */
  readonly value: Tensor;
  /** Logarithm of the state's decay, [chunks, heads, group, size, 1]; at most 0. */
  readonly decay: Tensor;
  /** How far a value replaces the state's value for its key, [chunks, heads, group, size, 1]; without it, it is added. */
  readonly strength?: Tensor;
  /** The state before the first token, [1, heads, group, keyDim, valueDim]. @default zeros */
  readonly state?: Tensor;
}

/**
 * Reads tokens into a state one after the other, and from it: with S of [keyDim, valueDim],
 * `S = e^decay S; S = S + key (strength (value - S^T key))^T; result = S^T query`, or without strengths
 * `S = e^decay S + key value^T`.
 *
 * All chunks are computed at once but for the states between them. Within a chunk the values that are added, V', solve
 * (I + A) V' = strength (value - e^decays S^T key), where A has the products of keys below its diagonal.
 */
export function chunkedScan(operands: ChunkedScanOperands): {
  /** [chunks, heads, group, size, valueDim] */
  readonly result: Tensor;
  /** The state after the last token, [1, heads, group, keyDim, valueDim]. */
  readonly state: Tensor;
} {
  const { query, key, value, decay, strength } = operands;
  const { graph } = value;
  const [chunks, size] = [dimAt(value, 0).constant, dimAt(value, 3).constant];
  if (chunks === undefined || size === undefined) {
    throw new Error(`chunks must be of a fixed number and size, got ${describeShape(value.shape)}`);
  }
  const sums = cumulativeSum(decay);
  const across = reshape(sums, [...sums.shape.slice(0, 3), 1, size]);
  const hide = graph.floats(
    table(size, (row, column) => (column > row ? -1e30 : 0)),
    [size, size],
  );
  // Hidden before the exponential: what lies above the diagonal would overflow.
  const between = exp(add(subtract(sums, across), hide));
  const sinceStart = exp(sums);
  const last = size === 1 ? sums : split(sums, 3, [size - 1, 1])[1];
  if (last === undefined) throw new Error("a chunk has no last token");
  const untilEnd = exp(subtract(last, sums));
  const scores = multiply(batchMatmul(query, key, { transposeRight: true }), between);
  const reading = multiply(query, sinceStart);
  const writing = chunksOf(multiply(key, untilEnd), chunks);
  const kept = chunksOf(exp(last), chunks);
  const solved = strength && solve(operands, strength, between, sinceStart);
  const added = chunksOf(solved?.values ?? value, chunks);
  const reads = solved && chunksOf(solved.keys, chunks);
  const readings = chunksOf(reading, chunks);
  const [written, fromStates]: [Tensor[], (Tensor | undefined)[]] = [[], []];
  let { state } = operands;
  for (let chunk = 0; chunk < chunks; chunk++) {
    const [plain, keys, left] = [added[chunk], writing[chunk], kept[chunk]];
    const read = reads?.[chunk];
    const asked = readings[chunk];
    if (!plain || !keys || !left || !asked) throw new Error("a chunk is missing");
    const own: Tensor =
      state === undefined || read === undefined ? plain : subtract(plain, batchMatmul(read, state));
    written.push(own);
    fromStates.push(state && batchMatmul(asked, state));
    const update: Tensor = batchMatmul(keys, own, { transposeLeft: true });
    state = state === undefined ? update : add(multiply(state, left), update);
  }
  if (state === undefined) throw new Error("there are no chunks");
  const within = chunksOf(batchMatmul(scores, joined(written)), chunks);
  const results = within.map((own, chunk) => {
    const earlier = fromStates[chunk];
    return earlier === undefined ? own : add(own, earlier);
  });
  return { result: joined(results), state };
}

/** The contribution of a chunk to an empty state, and the factor of the state before it. */
function solve(
  { key, value }: ChunkedScanOperands,
  strength: Tensor,
  between: Tensor,
  sinceStart: Tensor,
): { readonly values: Tensor; readonly keys: Tensor } {
  const products = multiply(batchMatmul(key, key, { transposeRight: true }), between);
  const inverse = unitLowerInverse(multiply(products, strength));
  return {
    values: batchMatmul(inverse, multiply(value, strength)),
    keys: batchMatmul(inverse, multiply(key, multiply(strength, sinceStart))),
  };
}

/**
 * `(I + A)^-1`, where only what lies below the diagonal of A counts; stacks of matrices.
 *
 * Blocks on the diagonal are joined two by two: the inverse of a pair has, below its diagonal, minus the inverse of one times
 * A times the inverse of the other. Powers of A would take one product less, but grow like binomials where neighbouring
 * keys are nearly equal: at 64 rows nothing is left of the result.
 */
export function unitLowerInverse(matrix: Tensor): Tensor {
  const { graph, shape } = matrix;
  const size = dimAt(matrix, shape.length - 1).constant;
  if (size === undefined || size < 2 || (size & (size - 1)) !== 0) {
    throw new Error("the size of a chunk must be a power of two");
  }
  const mask = (isPresent: (row: number, column: number) => boolean): Tensor =>
    graph.floats(
      table(size, (row, column) => Number(isPresent(row, column))),
      [size, size],
    );
  const lowerBlocks = (block: number): Tensor =>
    multiply(
      matrix,
      mask((row, column) => {
        const [below, beside] = [Math.floor(row / block), Math.floor(column / block)];
        return below === beside + 1 && below % 2 === 1;
      }),
    );
  const identity = mask((row, column) => row === column);
  if (size === 2) return subtract(identity, lowerBlocks(1));
  let inverse = subtract(identity, lowerBlocks(1));
  const correction = (block: number): Tensor =>
    batchMatmul(batchMatmul(inverse, lowerBlocks(block)), inverse);
  for (let block = 2; 2 * block < size; block *= 2) {
    inverse = subtract(inverse, correction(block));
  }
  const result: Tensor = graph.applyOne({
    type: "Sub",
    inputs: [inverse, correction(size / 2)],
    gradientInputs: [matrix],
    shape,
    isDear: true,
    vjp: ([gradient]) => {
      if (gradient === undefined) return [];
      const left = batchMatmul(result, gradient, { transposeLeft: true });
      const whole = batchMatmul(left, result, { transposeRight: true });
      return [
        negate(
          multiply(
            whole,
            mask((row, column) => column < row),
          ),
        ),
      ];
    },
  });
  return result;
}

/** Sums along the tokens of a chunk. */
function cumulativeSum(value: Tensor, reverse = 0): Tensor {
  return value.graph.applyOne({
    type: "CumSum",
    inputs: [value, value.graph.integers([3])],
    attributes: { reverse },
    shape: value.shape,
    vjp: ([gradient]) => [gradient && cumulativeSum(gradient, 1 - reverse)],
  });
}

function chunksOf(value: Tensor, chunks: number): readonly Tensor[] {
  if (chunks === 1) return [value];
  return split(
    value,
    0,
    Array.from({ length: chunks }, () => 1),
  );
}

function joined(chunks: readonly Tensor[]): Tensor {
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : concat(chunks, 0);
}

function table(size: number, valueAt: (row: number, column: number) => number): readonly number[] {
  return Array.from({ length: size * size }, (_, index) =>
    valueAt(Math.floor(index / size), index % size),
  );
}
