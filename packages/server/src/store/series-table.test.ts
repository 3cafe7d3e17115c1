import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { toNumber, toPlain } from "./sql.js";
import { topLevel, type PointKind } from "./series-batch.js";
import type { Entry } from "./series-table.js";
import { Store } from "./store.js";

let folder: string;
let store: Store;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-series-"));
  store = new Store(folder, { durability: "process" });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Step {
  readonly x: number;
  readonly value: number;
}

/** Adds rows in batches of some length. */
async function add(
  steps: readonly Step[],
  { kind = "log", key = "a", size = 40 }: { kind?: PointKind; key?: string; size?: number } = {},
): Promise<void> {
  for (let start = 0; start < steps.length; start += size) {
    await store.write(() => {
      const batch = store.series.batch("run");
      for (const { x, value } of steps.slice(start, start + size)) {
        batch.add({ attempt: 1, x, at: x * 10, kind, values: { [key]: toPlain(value) } });
      }
      batch.write();
    });
  }
}

const series = (key = "a") => store.series.list("run").find((one) => one.key === key)!;
const valuesOf = (key = "a") =>
  store.series.points(series(key).seriesId, Number.NEGATIVE_INFINITY, 1e6).map((one) => one.value);

const value = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -1000, max: 1000 }) },
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
);
/** Steps that go on, stand still now and then, and are long enough for every level. */
const anySteps = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 4 }), value), { minLength: 1, maxLength: 60 })
  .chain((some) => fc.tuple(fc.constant(some), fc.constantFrom(1, 7, 40)))
  .map(([some, times]) => {
    let x = -20;
    const all = Array.from({ length: times }, () => some).flat();
    return all.map(([gap, one]) => ({ x: (x += gap), value: one }));
  });

const summed = (entries: readonly Entry[]) => {
  const sum = (field: "finite" | "total" | "nan" | "plus" | "minus") =>
    entries.reduce((all, entry) => all + entry[field], 0);
  return {
    least: Math.min(...entries.map(({ least }) => least)),
    most: Math.max(...entries.map(({ most }) => most)),
    counts: [sum("finite"), sum("nan"), sum("plus"), sum("minus")],
    total: sum("total"),
  };
};

it("has every point of a range once at every level, whatever the range", async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.nat(400), fc.nat(400), async (steps, start, length) => {
      await store.write(() => store.series.remove("run"));
      await add(steps);
      const { seriesId } = series();
      const range = { from: start - 30, before: start - 30 + length };
      const points = store.series.entries(seriesId, 0, range);
      for (let level = 1; level <= topLevel; level++) {
        const entries = store.series.entries(seriesId, level, range);
        expect(summed(entries)).toEqual(summed(points));
        for (const [index, entry] of entries.entries()) {
          expect(entry.x).toBeGreaterThan(entries[index - 1]?.lastX ?? Number.NEGATIVE_INFINITY);
        }
      }
    }),
    { numRuns: 30 },
  );
});

it("has a summary of every 16, 128 and 1024 points", async () => {
  await add(Array.from({ length: 2100 }, (_, x) => ({ x, value: x })));
  const counts = [1, 2, 3].map((level) =>
    store.series.countRollups(series().seriesId, level, { from: 0, before: 1e9 }),
  );
  expect(counts).toEqual([131, 16, 2]);
});

it("has the summary of all points, of a step that was logged again the later value", async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, fc.constantFrom(1, 3, 1000), async (steps, size) => {
      await store.write(() => store.series.remove("run"));
      await add(steps, { size });
      const last = new Map(steps.map((one) => [one.x, one.value]));
      const values = [...last.values()];
      const finite = values.filter(Number.isFinite);
      let [sum, weight, before] = [0, 0, 0];
      for (const [x, one] of last) {
        if (!Number.isFinite(one)) continue;
        const decay = 2 ** (-(x - before) / 10);
        [sum, weight, before] = [sum * decay + one, weight * decay + 1, x];
      }
      const { smoothedLast, ...rest } = series();
      expect(rest).toMatchObject({
        count: values.length,
        firstX: steps[0]!.x,
        lastX: steps.at(-1)!.x,
        last: toPlain(values.at(-1)!),
        min: finite.length > 0 ? Math.min(...finite) : null,
        max: finite.length > 0 ? Math.max(...finite) : null,
        nonFinite: values.length - finite.length,
      });
      if (weight > 0) expect(smoothedLast).toBeCloseTo(sum / weight, 6);
      else expect(smoothedLast).toBeNaN();
      expect(valuesOf()).toEqual(values);
    }),
    { numRuns: 30 },
  );
});

it("merges passes of one step as their names say, across transactions", async () => {
  const passes = [3, 1, 5].map((one) => ({ x: 0, value: one }));
  for (const key of ["a:sum", "a:min", "a:max", "a:mean", "a"]) {
    await add(passes, { kind: "pass", key, size: 1 });
  }
  const merged = ["a:sum", "a:min", "a:max", "a:mean", "a"].map((key) => series(key).last);
  expect(merged).toEqual([9, 1, 5, 3, 5]);
  await add([{ x: 1, value: 7 }], { kind: "pass", key: "a:sum" });
  expect([valuesOf("a:sum"), series("a:sum").first]).toEqual([[9, 7], 9]);
  await add([...passes, { x: 1, value: 7 }], { kind: "pass", key: "b:sum" });
  expect([valuesOf("b:sum"), series("b:sum").first]).toEqual([[9, 7], 9]);
});

it("adds what follows from merged values", async () => {
  const pass = (x: number, loss: number, weights: number) =>
    store.write(() => {
      const batch = store.series.batch("run");
      const values = { "loss:sum": loss, "weights:sum": weights };
      batch.add({ attempt: 1, x, at: 0, kind: "pass", values });
      batch.write();
    });
  await pass(0, 6, 2);
  await pass(0, 4, 3);
  await pass(1, 8, 0);
  await pass(2, 8, 4);
  expect(valuesOf("nll")).toEqual([2, 2]);
});

it("holds the largest numbers there are", async () => {
  const steps = Array.from({ length: 300 }, (_, x) => ({ x, value: x % 2 ? 1e308 : -1e308 }));
  await add([...steps, { x: 300, value: 1.7e308 }, { x: 301, value: 1.7e308 }]);
  const { min, max, smoothedLast } = series();
  expect([min, max]).toEqual([-1e308, 1.7e308]);
  expect(Number.isFinite(smoothedLast)).toBe(true);
  expect(toNumber(series().last)).toBe(1.7e308);
});
