import fc from "fast-check";
import { expect, it } from "vitest";
import { chunkLength, summarize } from "../recording/chunk.js";
import { atOnce } from "./in-turns.js";
import { reduceSeries, type Reduction } from "./reduce-series.js";
import { blockOf, type Block } from "./run-series.js";
import { SmoothingMemory } from "./smoothing-memory.js";

const whole = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
const value = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -1000, max: 1000 }) },
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
);
const pointsBetween = (minLength: number, maxLength: number) =>
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: 40 }), value), { minLength, maxLength })
    .map((steps) => {
      let x = -20;
      return steps.map(([gap, one]) => ({ x: (x += gap), value: one }));
    });
const points = pointsBetween(1, 300);

type Point = { readonly x: number; readonly value: number };

/** Points in chunks with summaries, as the database has them; all but the last are settled. */
function chunked(all: readonly Point[], size: number): Block[] {
  const blocks: Block[] = [];
  for (let start = 0; start < all.length; start += size) {
    const part = all.slice(start, start + size);
    const block = blockOf({
      x: part.map(({ x }) => x),
      value: part.map((one) => one.value),
      at: part.map(() => 0),
    });
    const isLast = start + size >= all.length;
    const known = summarize(start / size, block.columns(false));
    blocks.push(isLast ? block : { ...block, known, series: "one" });
  }
  return blocks;
}

function reduce(
  all: readonly Point[],
  size: number,
  wanted: Partial<Reduction>,
  memory?: SmoothingMemory,
) {
  const stretches = chunked(all, size).map((block) => ({ block, cut: null, begin: null }));
  const reduction = { ...whole, buckets: 16, halfLife: 0, ...wanted };
  return atOnce(reduceSeries(stretches, null, reduction, memory));
}

it("keeps the least and the largest value and every point that is not finite", () => {
  fc.assert(
    fc.property(points, fc.integer({ min: 1, max: 50 }), (all, size) => {
      const { min, max, nan, plusInfinity, minusInfinity, count, width, x } = reduce(all, size, {});
      const finite = all.map((one) => one.value).filter(Number.isFinite);
      const kept = (values: Float32Array) => [...values].filter(Number.isFinite);
      if (finite.length > 0) {
        expect(Math.min(...kept(min))).toBe(Math.min(...finite));
        expect(Math.max(...kept(max))).toBe(Math.max(...finite));
      }
      const sum = (counts: Uint32Array | null) => counts?.reduce((a, b) => a + b, 0) ?? 0;
      const lost = sum(nan) + sum(plusInfinity) + sum(minusInfinity);
      expect(lost).toBe(all.length - finite.length);
      if (width > 0) {
        expect(sum(count)).toBe(finite.length);
        expect([...x].every((place) => place % width === 0)).toBe(true);
        expect(Math.log2(width) % 1).toBe(0);
      }
    }),
  );
});

it("gives the same whatever the chunks, from summaries or from points", () => {
  fc.assert(
    fc.property(points, fc.integer({ min: 1, max: 50 }), (all, size) => {
      const close = ({ mean, ...rest }: ReturnType<typeof reduce>) => ({
        ...rest,
        mean: [...mean].map((one) => Number(one.toPrecision(5))),
      });
      expect(close(reduce(all, size, {}))).toEqual(close(reduce(all, chunkLength, {})));
    }),
  );
});

it("smooths from all points, at every zoom, and leaves a constant alone", () => {
  fc.assert(
    fc.property(points, fc.integer({ min: 0, max: 100 }), (all, from) => {
      const halfLife = 7;
      const reference = new Map<number, number>();
      for (const [index, { x }] of all.entries()) {
        const before = all.slice(0, index + 1).filter((one) => Number.isFinite(one.value));
        const weights = before.map((one) => 2 ** (-(x - one.x) / halfLife));
        const top = before.reduce((sum, one, place) => sum + one.value * weights[place]!, 0);
        reference.set(x, top / weights.reduce((sum, weight) => sum + weight, 0));
      }
      const { x, smoothed } = reduce(all, 13, { halfLife, from, buckets: 1000 });
      for (const [index, place] of x.entries()) {
        if (!Number.isFinite(all.find((one) => one.x === place)!.value)) continue;
        expect(smoothed![index]).toBeCloseTo(reference.get(place)!, 2);
      }
      const constant = all.map((one) => ({ ...one, value: 3 }));
      expect(new Set(reduce(constant, 13, { halfLife }).smoothed)).toEqual(new Set([3]));
    }),
  );
});

it("remembers where smoothing stood, which changes no value, whatever was asked before and came since", () => {
  const question = fc.record({
    begin: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constant(Number.POSITIVE_INFINITY)),
    buckets: fc.constantFrom(4, 16, 1000),
    halfLife: fc.constantFrom(7, 300),
    share: fc.double({ min: 0.1, max: 1, noNaN: true }),
  });
  const questions = fc.array(question, { minLength: 8, maxLength: 16 });
  fc.assert(
    fc.property(
      pointsBetween(40, 120),
      fc.integer({ min: 3, max: 30 }),
      questions,
      (all, size, asked) => {
        const memory = new SmoothingMemory();
        // The run grows from one question to the next.
        for (const { begin, length, share, ...rest } of asked.toSorted(
          (a, b) => a.share - b.share,
        )) {
          const sofar = all.slice(0, Math.ceil(all.length * share));
          const from = sofar[Math.floor(begin * (sofar.length - 1))]!.x;
          const wanted = { from, to: from + length, ...rest };
          expect(reduce(sofar, size, wanted, memory)).toEqual(reduce(sofar, all.length, wanted));
        }
      },
    ),
  );
});

it("reads no chunk before a zoom again once smoothing has passed there", () => {
  const all = Array.from({ length: 100 }, (_, x) => ({ x, value: Math.sin(x) }));
  const read: number[] = [];
  const stretches = chunked(all, 10).map((block) => {
    const columns = (withTimes: boolean) => {
      read.push(block.firstX);
      return block.columns(withTimes);
    };
    return { block: { ...block, columns }, cut: null, begin: null };
  });
  const memory = new SmoothingMemory();
  const ask = (from: number, to: number) => {
    read.length = 0;
    atOnce(reduceSeries(stretches, null, { from, to, buckets: 5, halfLife: 3 }, memory));
    return [...new Set(read)];
  };
  expect(ask(0, 99)).toHaveLength(10);
  expect(ask(72, 85)).toEqual([70, 80]);
});
