import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { StudioSeries } from "tinker-ts/wire";
import { toPlain } from "../store/sql.js";
import { Store } from "../store/store.js";
import { SeriesReader, type SeriesQuery } from "./read-series.js";
import { storedSeries } from "./run-series.js";

interface Point {
  readonly step: number;
  readonly at: number;
  readonly value: number;
}

let folder: string;
let store: Store;
let runs: number;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-read-"));
  store = new Store(folder, { durability: "process" });
  runs = 0;
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Stores attempts at some metrics, and reads one of them. */
async function reading(
  metrics: Readonly<Record<string, readonly (readonly Point[])[]>>,
): Promise<(query?: Partial<SeriesQuery>, key?: string) => StudioSeries[]> {
  const run = `run-${runs++}`;
  await store.write(() => {
    const batch = store.series.batch(run);
    for (const [key, attempts] of Object.entries(metrics)) {
      for (const [index, points] of attempts.entries()) {
        for (const { step: x, at, value } of points) {
          const values = { [key]: toPlain(value) };
          batch.add({ attempt: index + 1, x, at, kind: "log", values });
        }
      }
    }
    batch.write();
  });
  const reader = new SeriesReader(store.series, storedSeries(store, run));
  return (query = {}, key = "a") =>
    atOnce(
      reader.read(run, key, {
        x: "step",
        from: Number.NEGATIVE_INFINITY,
        to: Number.POSITIVE_INFINITY,
        buckets: 5000,
        ...query,
      }),
    );
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

it("finds the tokens of a step from all counts up to it", async () => {
  await fc.assert(
    fc.asyncProperty(growing, growing, async (points, counted) => {
      const read = await reading({ a: [points], tokens: [counted] });
      const known = points.filter(({ step }) => step >= counted[0]!.step);
      expect([...read({ x: "tokens" })[0]!.x]).toEqual(
        known.map(({ step }) =>
          counted.filter((one) => one.step <= step).reduce((sum, { value }) => sum + value, 0),
        ),
      );
    }),
  );
});

it("counts tokens of steps that were done anew once", async () => {
  const at = 0;
  const step = (from: number, to: number, value: number): Point[] =>
    Array.from({ length: to - from }, (_, index) => ({ step: from + index, at, value }));
  const read = await reading({
    a: [step(0, 8, 1), step(5, 10, 1)],
    tokens: [step(0, 8, 10), step(5, 10, 100)],
  });
  const places = [...read({ x: "tokens" })[0]!.x];
  expect(places).toEqual([10, 20, 30, 40, 50, 150, 250, 350, 450, 550]);
});

it("leaves pauses out of the time that a run was active", async () => {
  await fc.assert(
    fc.asyncProperty(growing, async (points) => {
      const gaps = points.slice(1).map(({ at }, index) => at - points[index]!.at);
      const usual = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
      let active = 0;
      const expected = [
        0,
        ...gaps.map((gap) => (active += gap > Math.max(60_000, 10 * usual) ? 0 : gap)),
      ];
      const read = await reading({ a: [points] });
      expect([...read({ x: "active" })[0]!.x]).toEqual(expected.map((ms) => ms / 1000));
    }),
  );
});

const value = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -1000, max: 1000 }) },
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
);
const anyPoints = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 40 }), value), { minLength: 1, maxLength: 300 })
  .map((steps) => {
    let step = -20;
    return steps.map(([gap, one]): Point => ({ step: (step += gap), at: 0, value: one }));
  });
const sumOf = (counts: Uint32Array | null) => counts?.reduce((a, b) => a + b, 0) ?? 0;

it("keeps the least and the largest value and every point that is not finite", async () => {
  await fc.assert(
    fc.asyncProperty(anyPoints, fc.constantFrom(2, 16, 100), async (all, buckets) => {
      const [series] = (await reading({ a: [all] }))({ buckets });
      const { min, max, nan, plusInfinity, minusInfinity, count, width, x } = series!;
      const finite = all.map((one) => one.value).filter(Number.isFinite);
      const kept = (values: Float32Array) => [...values].filter(Number.isFinite);
      if (finite.length > 0) {
        expect(Math.min(...kept(min))).toBe(Math.min(...finite));
        expect(Math.max(...kept(max))).toBe(Math.max(...finite));
      }
      const lost = sumOf(nan) + sumOf(plusInfinity) + sumOf(minusInfinity);
      expect(lost).toBe(all.length - finite.length);
      expect(series!.total).toBe(all.length);
      if (width > 0) {
        expect(sumOf(count)).toBe(finite.length);
        expect([...x].every((place) => place % width === 0)).toBe(true);
        expect(Math.log2(width) % 1).toBe(0);
      }
    }),
  );
});

const long = Array.from({ length: 40_000 }, (_, step): Point => ({
  step,
  at: 1e12 + step * 1000,
  value: step === 17_777 ? 99 : Math.sin(step / 900),
}));

it("reduces a long run from summaries: no peak is lost, nor far from its place", async () => {
  const read = await reading({ a: [long], tokens: [long.map((one) => ({ ...one, value: 2 }))] });
  for (const [x, place] of [
    ["step", 17_777],
    ["tokens", 2 * 17_778],
    ["relative", 17_777],
    ["active", 17_777],
  ] as const) {
    const [whole] = read({ x, buckets: 300 });
    expect([x, whole!.total, sumOf(whole!.count)]).toEqual([x, 40_000, 40_000]);
    const peak = whole!.max.indexOf(99);
    expect(Math.abs(whole!.x[peak]! + whole!.width / 2 - place)).toBeLessThanOrEqual(
      1.5 * whole!.width,
    );
    // A zoom ends at the points themselves, in their places.
    const [zoom] = read({ x, from: place - 20, to: place + 20, buckets: 300 });
    expect([zoom!.width, zoom!.x[zoom!.max.indexOf(99)]]).toEqual([0, place]);
    expect(zoom!.x[0]).toBeGreaterThanOrEqual(place - 20);
    expect(zoom!.x.at(-1)).toBeLessThanOrEqual(place + 20);
  }
});

it("has each point once where an attempt replaces another in the middle of summaries", async () => {
  const read = await reading({
    a: [long, long.slice(30_005).map((one) => ({ ...one, value: 7 }))],
  });
  const [current, left] = read({ buckets: 100 });
  expect([current!.total, left!.total, left!.isAbandoned]).toEqual([40_000, 9_995, true]);
  const [edge] = read({ from: 29_990, to: 30_020 });
  expect([...edge!.mean].filter((one) => one === 7)).toHaveLength(16);
  expect([...edge!.x]).toEqual(Array.from({ length: 31 }, (_, index) => 29_990 + index));
});

/** Does all of the work now. */
function atOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const next = work.next();
    if (next.done) return next.value;
  }
}
