import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { topLevel } from "./series-batch.js";
import { Store } from "./store.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-old-series-"));
  const fixture = path.join(import.meta.dirname, "../../test/fixtures/chunked-series.db.gz");
  writeFileSync(path.join(folder, "server.db"), gunzipSync(readFileSync(fixture)));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const everything = { from: Number.NEGATIVE_INFINITY, before: Number.POSITIVE_INFINITY };

it("moves chunks in parts, and goes on where it was after each of them", async () => {
  let parts = 0;
  for (let isMore = true; isMore;) {
    const store = new Store(folder, { durability: "process" });
    const counts = store.series.list("log").map(({ count }) => count);
    expect(counts).toEqual([130, 1300, 200, 130, 200]);
    isMore = store.oldSeries.has(null);
    if (isMore) {
      await store.write(() => store.oldSeries.moveChunk(null));
      parts++;
    }
    await store.close();
  }
  expect(parts).toBeGreaterThan(4);
  const store = new Store(folder, { durability: "process" });
  for (const { seriesId, count } of store.series.list("log")) {
    for (let level = 0; level <= topLevel; level++) {
      const entries = store.series.entries(seriesId, level, everything);
      const points = entries.reduce(
        (sum, one) => sum + one.finite + one.nan + one.plus + one.minus,
        0,
      );
      expect([level, points]).toEqual([level, count]);
    }
  }
  await store.close();
});

it("moves the points of the run that is asked for", async () => {
  const store = new Store(folder, { durability: "process" });
  expect([store.oldSeries.has("log"), store.oldSeries.has("other")]).toEqual([true, false]);
  while (store.oldSeries.has("log")) await store.write(() => store.oldSeries.moveChunk("log"));
  const { seriesId } = store.series.list("log").find(({ key }) => key === "loss")!;
  expect(store.series.points(seriesId, 0, 5000)).toHaveLength(1300);
  await store.close();
});
