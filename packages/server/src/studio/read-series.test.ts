import fc from "fast-check";
import { expect, it } from "vitest";
import { atOnce } from "./in-turns.js";
import { readSeries } from "./read-series.js";
import { blockOf, startsOf, type AttemptSeries, type RunSeries } from "./run-series.js";
import { SmoothingMemory } from "./smoothing-memory.js";

interface Point {
  readonly step: number;
  readonly at: number;
  readonly value: number;
}

/** Attempts at some metrics, in blocks of three points. */
function runOf(metrics: Readonly<Record<string, readonly (readonly Point[])[]>>): RunSeries {
  const all = new Map(
    Object.entries(metrics).map(([key, attempts]) => [
      key,
      attempts.map((points, index) => attemptOf(index + 1, points)),
    ]),
  );
  return {
    keys: [...all.keys()],
    attempts: (key) => all.get(key) ?? [],
    starts: startsOf(all),
  };
}

function attemptOf(attempt: number, points: readonly Point[]): AttemptSeries {
  const parts: Point[][] = [];
  for (let start = 0; start < points.length; start += 3) parts.push(points.slice(start, start + 3));
  return {
    attempt,
    count: points.length,
    firstX: points[0]!.step,
    lastX: points.at(-1)!.step,
    summary: { first: 0, last: 0, min: 0, max: 0, nonFinite: 0, sum: 0, weight: 0 },
    blocks: () =>
      parts.map((part) =>
        blockOf({
          x: part.map(({ step }) => step),
          value: part.map(({ value }) => value),
          at: part.map(({ at }) => at),
        }),
      ),
  };
}

function placesOf(series: RunSeries, x: string, key = "a"): number[] {
  const query = { x, from: -1e300, to: 1e300, buckets: 10_000, halfLife: 0 };
  const [current] = atOnce(readSeries("run", series, key, query, new SmoothingMemory()));
  return [...current!.x];
}

const growing = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 200_000 })), {
    minLength: 1,
    maxLength: 40,
  })
  .map((gaps) => {
    let step = 0;
    let at = 1e12;
    return gaps.map(([more, ms]): Point => {
      step += more;
      at += ms;
      return { step, at, value: (step * 7) % 5 };
    });
  });

it("finds the tokens of a step from all counts up to it", () => {
  fc.assert(
    fc.property(growing, growing, (points, counted) => {
      const series = runOf({ a: [points], tokens: [counted] });
      const known = points.filter(({ step }) => step >= counted[0]!.step);
      expect(placesOf(series, "tokens")).toEqual(
        known.map(({ step }) =>
          counted.filter((one) => one.step <= step).reduce((sum, { value }) => sum + value, 0),
        ),
      );
    }),
  );
});

it("counts tokens of steps that were done anew once", () => {
  const at = 0;
  const step = (from: number, to: number, value: number): Point[] =>
    Array.from({ length: to - from }, (_, index) => ({ step: from + index, at, value }));
  const series = runOf({
    a: [step(0, 8, 1), step(5, 10, 1)],
    tokens: [step(0, 8, 10), step(5, 10, 100)],
  });
  expect(placesOf(series, "tokens")).toEqual([10, 20, 30, 40, 50, 150, 250, 350, 450, 550]);
});

it("leaves pauses out of the time that a run was active", () => {
  fc.assert(
    fc.property(growing, (points) => {
      const gaps = points.slice(1).map(({ at }, index) => at - points[index]!.at);
      const usual = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
      let active = 0;
      const expected = [
        0,
        ...gaps.map((gap) => (active += gap > Math.max(60_000, 10 * usual) ? 0 : gap)),
      ];
      expect(placesOf(runOf({ a: [points] }), "active")).toEqual(expected.map((ms) => ms / 1000));
    }),
  );
});
