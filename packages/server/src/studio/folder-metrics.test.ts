import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { extendSummary } from "../recording/fold-points.js";
import { FolderMetrics } from "./folder-metrics.js";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-metrics-"));
  file = path.join(folder, "metrics.jsonl");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lineOf = (step: number, value: number | string): string =>
  `{"step": ${step}, "a": ${value}}\n`;

/** What is known of the metric `a`, attempt by attempt. */
const read = (metrics: FolderMetrics) =>
  metrics
    .series()
    .attempts("a")
    .map((attempt) => {
      const columns = attempt.blocks().map((block) => block.columns(false));
      return {
        x: columns.flatMap(({ x }) => [...x]),
        value: columns.flatMap(({ value }) => [...value]),
        count: attempt.count,
        ends: [attempt.firstX, attempt.lastX],
        summary: attempt.summary,
      };
    });

it("has the points and the summary of all lines, however they came", async () => {
  const point = fc.tuple(
    fc.integer({ min: 0, max: 1 }),
    fc.oneof(
      fc.integer({ min: -9, max: 9 }),
      fc.constantFrom("NaN", "Infinity", "-Infinity", '"NaN"'),
    ),
  );
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(point, { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 120 }),
      cuts,
      async (some, times, places) => {
        // The same points again and again, until they fill several chunks.
        let step = 0;
        const points = Array.from({ length: times }, () => some)
          .flat()
          .map(([more, value]) => ({ step: (step += more), value }));
        const text = points.map((one) => lineOf(one.step, one.value)).join("");
        writeFileSync(file, "");
        const metrics = new FolderMetrics(file);
        const ends = places
          .map((place) => Math.floor(place * text.length))
          .toSorted((a, b) => a - b);
        let start = 0;
        for (const end of [...ends, text.length]) {
          appendFileSync(file, text.slice(start, end));
          start = end;
          await metrics.update();
        }
        const last = new Map(
          points.map((one) => [one.step, Number(String(one.value).replaceAll('"', ""))]),
        );
        const [x, value] = [[...last.keys()], [...last.values()]];
        expect(read(metrics)).toEqual([
          {
            x,
            value,
            count: x.length,
            ends: [x[0], x.at(-1)],
            summary: extendSummary(undefined, x, value),
          },
        ]);
      },
    ),
    { numRuns: 40 },
  );
});

it("skips a line that is too long to be one, and goes on behind it", async () => {
  writeFileSync(file, `${lineOf(0, 1)}{"text": "${"x".repeat(5 << 20)}"}\n${lineOf(1, 2)}`);
  const metrics = new FolderMetrics(file);
  await metrics.update();
  expect(read(metrics)).toMatchObject([{ x: [0, 1], value: [1, 2] }]);
  expect(metrics.brokenLines).toBe(1);
  appendFileSync(file, lineOf(2, 3));
  await metrics.update();
  expect(read(metrics)).toMatchObject([{ value: [1, 2, 3] }]);
});

it("begins anew with another file of the same name", async () => {
  writeFileSync(file, `not json\n${lineOf(0, 1)}${lineOf(1, 2)}`);
  const metrics = new FolderMetrics(file);
  await metrics.update();
  const other = path.join(folder, "other");
  writeFileSync(other, `${lineOf(5, 50)}${lineOf(6, 60)}${lineOf(7, 70)}`);
  renameSync(other, file);
  await metrics.update();
  expect(read(metrics)).toMatchObject([{ x: [5, 6, 7], value: [50, 60, 70] }]);
  expect(metrics.brokenLines).toBe(0);
});
