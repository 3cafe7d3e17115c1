import fc from "fast-check";
import { expect, it } from "vitest";
import { addLowRank } from "./low-rank.js";

const size = fc.integer({ min: 1, max: 9 });
const value = { min: -2, max: 2, noNaN: true };

function values(count: number): fc.Arbitrary<Float32Array> {
  return fc.float32Array({ ...value, minLength: count, maxLength: count });
}

it("adds scale * B A, rounded once, for any sizes", async () => {
  const input = fc.tuple(size, size, size).chain(([rows, columns, rank]) =>
    fc.record({
      rows: fc.constant(rows),
      columns: fc.constant(columns),
      rank: fc.constant(rank),
      scale: fc.float(value),
      matrix: values(rows * columns),
      a: values(rank * columns),
      b: values(rows * rank),
    }),
  );
  await fc.assert(
    fc.asyncProperty(input, async ({ rows, columns, rank, scale, matrix, a, b }) => {
      const merged = matrix.slice();
      await addLowRank(merged, { a, b, rank, scale });
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          let exact = matrix[row * columns + column] ?? NaN;
          for (let k = 0; k < rank; k++) {
            exact += scale * (b[row * rank + k] ?? NaN) * (a[k * columns + column] ?? NaN);
          }
          const tolerance = 2 ** -23 * Math.max(Math.abs(exact), 1e-6);
          expect(Math.abs((merged[row * columns + column] ?? NaN) - exact)).toBeLessThanOrEqual(
            tolerance,
          );
        }
      }
    }),
  );
});

it("lets other work run and stops when aborted", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  setImmediate(() => controller.abort(reason));
  const update = {
    a: new Float32Array(64 * 4096),
    b: new Float32Array(4096 * 64),
    rank: 64,
    scale: 1,
  };
  const merging = addLowRank(new Float32Array(4096 * 4096), update, {
    signal: controller.signal,
  });
  await expect(merging).rejects.toBe(reason);
});

it("adds to the rows and columns of a place only", async () => {
  const target = new Float32Array(12);
  const update = { a: Float32Array.of(1, 2), b: Float32Array.of(10, 20, 30), rank: 1, scale: 0.5 };
  await addLowRank(target, update, { place: { first: 1, rowStep: 2, columnStep: 6 } });
  expect([...target]).toEqual([0, 5, 0, 10, 0, 15, 0, 10, 0, 20, 0, 30]);
});
