import fc from "fast-check";
import { expect, it } from "vitest";
import type { StudioSeries } from "tinker-ts/wire/studio";
import { halfLivesBefore, toCurve } from "./smooth.js";

/** A series of points, as the server answers where it reduces nothing. */
function seriesOf(points: readonly (readonly [x: number, value: number])[]): StudioSeries {
  const mean = Float32Array.from(points, ([, value]) => value);
  return {
    run: "run",
    key: "nll",
    attempt: 1,
    isAbandoned: false,
    width: 0,
    total: points.length,
    length: points.length,
    columns: [],
    x: Float64Array.from(points, ([x]) => x),
    mean,
    min: mean,
    max: mean,
    count: null,
    nan: mean.some(Number.isNaN)
      ? Uint32Array.from(mean, (one) => Number(Number.isNaN(one)))
      : null,
    plusInfinity: null,
    minusInfinity: null,
  };
}

const value = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -1000, max: 1000 }) },
  fc.constant(Number.NaN),
);
const anyPoints = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 40 }), value), { minLength: 1, maxLength: 300 })
  .map((steps) => {
    let x = -20;
    return steps.map(([gap, one]) => [(x += gap), one] as const);
  });

it("smooths from all points, at every zoom, and keeps a constant", () => {
  fc.assert(
    fc.property(anyPoints, fc.integer({ min: 0, max: 100 }), (points, from) => {
      const halfLife = 7;
      const reference = new Map<number, number>();
      for (const [index, [x]] of points.entries()) {
        const before = points.slice(0, index + 1).filter(([, one]) => !Number.isNaN(one));
        const weights = before.map(([at]) => 2 ** (-(x - at) / halfLife));
        const top = before.reduce((sum, [, one], place) => sum + one * weights[place]!, 0);
        reference.set(x, top / weights.reduce((sum, weight) => sum + weight, 0));
      }
      const asked = points.filter(([x]) => x >= from - halfLivesBefore * halfLife);
      const { x, smoothed } = toCurve(seriesOf(asked), halfLife, [from, Infinity], 1000);
      expect([...x]).toEqual(points.map(([at]) => at).filter((at) => at >= from));
      for (const [index, at] of x.entries()) {
        if (Number.isNaN(points.find(([one]) => one === at)![1])) continue;
        // What is far back in a gap that is longer than the warm-up counts for nothing.
        if (Number.isNaN(reference.get(at)!)) continue;
        expect(smoothed![index]).toBeCloseTo(reference.get(at)!, 1);
      }
      const constant = seriesOf(points.map(([at]) => [at, 3]));
      expect(new Set(toCurve(constant, halfLife, null, 1000).smoothed)).toEqual(new Set([3]));
    }),
  );
});

it("merges buckets without losing minimum, maximum or counts", () => {
  fc.assert(
    fc.property(anyPoints, fc.constantFrom(3, 20, 100), (points, buckets) => {
      const { x, min, max, mean, count, nan, smoothed, width, length } = toCurve(
        seriesOf(points),
        5,
        null,
        buckets,
      );
      const finite = points.map(([, one]) => one).filter((one) => !Number.isNaN(one));
      const kept = (values: Float32Array) => [...values].filter((one) => !Number.isNaN(one));
      expect(Math.min(...kept(min))).toBe(Math.min(...finite));
      expect(Math.max(...kept(max))).toBe(Math.max(...finite));
      expect(length).toBeLessThanOrEqual(Math.max(buckets, 1));
      const sum = (counts: Uint32Array | null) => counts?.reduce((a, b) => a + b, 0) ?? 0;
      expect(sum(nan)).toBe(points.length - finite.length);
      if (width === 0) return;
      expect(sum(count)).toBe(finite.length);
      expect([...x].every((at) => at % width === 0)).toBe(true);
      const total = [...mean].reduce((all, one, place) => all + (one || 0) * count![place]!, 0);
      expect(total).toBeCloseTo(
        finite.reduce((all, one) => all + one, 0),
        0,
      );
      const fine = toCurve(seriesOf(points), 5, null, 1000).smoothed!;
      if (finite.length > 0) expect(smoothed!.at(-1)).toBe(fine.at(-1));
    }),
  );
});
