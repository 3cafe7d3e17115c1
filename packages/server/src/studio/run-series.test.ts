import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { foldPoints } from "../recording/fold-points.js";
import { Store } from "../store/store.js";
import { storedSeries, type RunSeries } from "./run-series.js";

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

const log = (from: number, to: number, plus = 0) =>
  store.write(() => {
    for (let x = from; x < to; x++) {
      store.points.add("run", { attempt: 1, x, at: x, kind: "log", values: { a: x + plus } });
    }
  });
const fold = async () => {
  while (await store.write(() => foldPoints(store, "run")));
};
const valuesOf = (series: RunSeries) =>
  series
    .attempts("a")
    .flatMap((attempt) => attempt.blocks())
    .flatMap((block) => [...block.columns(false).value]);
const upTo = (end: number) => Array.from({ length: end }, (_, x) => x);

it("has every point once while rows become columns under its eyes", async () => {
  await log(0, 1500);
  await fold();
  await log(1500, 2600);
  const before = storedSeries(store, "run");
  await fold();
  expect(valuesOf(before)).toEqual(upTo(2600));
  expect(valuesOf(storedSeries(store, "run"))).toEqual(upTo(2600));
});

it("has the later value of a step that was logged again", async () => {
  await log(0, 1024);
  await fold();
  await log(1023, 1030, 0.5);
  const expected = [
    ...upTo(1023),
    ...upTo(1030)
      .slice(1023)
      .map((x) => x + 0.5),
  ];
  expect(valuesOf(storedSeries(store, "run"))).toEqual(expected);
  await fold();
  expect(valuesOf(storedSeries(store, "run"))).toEqual(expected);
});

it("names a series anew when another has got the number of one that was removed", async () => {
  const nameOf = () => storedSeries(store, "run").attempts("a")[0]!.blocks()[0]!.series;
  await log(0, 1500);
  await fold();
  const name = nameOf();
  expect(name).toBeDefined();
  await store.write(() => store.points.remove("run"));
  await log(0, 1500);
  await fold();
  expect(nameOf()).not.toBe(name);
});
