import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { restSteps, toInt8, transposedValues } from "./int8-matrix.js";

const rowsOf = (columns: number) =>
  fc.array(
    fc.array(fc.float({ noNaN: true, min: -1e6, max: 1e6 }), {
      minLength: columns,
      maxLength: columns,
    }),
    { minLength: 1, maxLength: 5 },
  );

describe("a matrix in 8 bits", () => {
  it("has an error of half a step of its row at most, and far less with a second digit", () => {
    fc.assert(
      fc.property(rowsOf(9), fc.boolean(), (rows, withRest) => {
        const floats = Float32Array.from(rows.flat());
        const { values, scale, rest } = toInt8("w", floats, rows.length, withRest);
        for (const [i, value] of floats.entries()) {
          const step = scale[Math.floor(i / 9)] ?? NaN;
          const found = ((values[i] ?? NaN) + (rest?.[i] ?? 0) / restSteps) * step;
          const limit = withRest ? step / restSteps / 2 : step / 2;
          expect(Math.abs(found - value)).toBeLessThanOrEqual(
            limit * 1.001 + 1e-6 * Math.abs(value),
          );
        }
      }),
    );
  });

  it("names the tensor with values that are not finite", () => {
    for (const bad of [NaN, Infinity, -Infinity]) {
      expect(() => toInt8("model.norm.weight", Float32Array.of(1, bad, 2, 3), 2)).toThrow(
        /"model\.norm\.weight" holds a value that is not finite/,
      );
    }
  });

  it("is transposed at any size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 150 }), fc.integer({ min: 1, max: 150 }), (r, c) => {
        const values = Int8Array.from({ length: r * c }, (_, i) => i * 7);
        const turned = transposedValues(values, r);
        expect(turned[(c - 1) * r]).toBe(values[c - 1]);
        expect(transposedValues(turned, c)).toEqual(values);
      }),
    );
  });
});
