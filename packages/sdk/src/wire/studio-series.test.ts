import fc from "fast-check";
import { expect, it } from "vitest";
import { readStudioSeries, writeStudioSeries, type StudioSeries } from "./studio-series.js";

const floats = (length: number) =>
  fc.array(fc.float({ noDefaultInfinity: false }), { minLength: length, maxLength: length });
const counts = (length: number) =>
  fc.option(fc.array(fc.nat(), { minLength: length, maxLength: length }));

const anySeries = fc.nat(9).chain((length) =>
  fc
    .record({
      run: fc.string(),
      key: fc.string({ unit: "grapheme" }),
      isAbandoned: fc.boolean(),
      x: fc.array(fc.double(), { minLength: length, maxLength: length }),
      mean: floats(length),
      min: fc.option(floats(length)),
      count: counts(length),
      nan: counts(length),
      minusInfinity: counts(length),
    })
    .map((given): StudioSeries => {
      const { run, key, isAbandoned, count, nan, minusInfinity } = given;
      const mean = Float32Array.from(given.mean);
      return {
        run,
        key,
        isAbandoned,
        attempt: 2,
        width: 0.5,
        total: 7,
        length,
        columns: [],
        x: Float64Array.from(given.x),
        mean,
        min: given.min ? Float32Array.from(given.min) : mean,
        max: mean,
        count: count && Uint32Array.from(count),
        nan: nan && Uint32Array.from(nan),
        plusInfinity: null,
        minusInfinity: minusInfinity && Uint32Array.from(minusInfinity),
      };
    }),
);

it("round-trips series of any names and columns", () => {
  fc.assert(
    fc.property(fc.array(anySeries, { maxLength: 4 }), (series) => {
      const read = readStudioSeries(writeStudioSeries(series).buffer as ArrayBuffer);
      const plain = (one: StudioSeries) => ({ ...one, columns: [] });
      expect(read.map(plain)).toEqual(series.map(plain));
    }),
  );
});
