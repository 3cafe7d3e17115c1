import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { StudioRun, StudioRunDetail, StudioSeries } from "tinker-ts/wire";
import { passBody, TestApp } from "../support/test-app.js";
import { askStudio, getRun, getSeries, listRuns } from "./support.js";

/*
 * A data directory of a server that stored series in chunks, and what that server answered: a logged run of two
 * attempts and 1,300 steps, and a model with three steps and a pass of the fourth.
 */
type Kept = Pick<StudioRunDetail, "series"> & { marks: number; csv: string };
const fixture = (name: string) => path.join(import.meta.dirname, "../fixtures", name);
const expected = JSON.parse(readFileSync(fixture("chunked-series.json"), "utf8")) as {
  modelId: string;
  runs: Partial<StudioRun>[];
  log: Kept;
  zoom: Record<keyof StudioSeries, unknown>[];
};
const { modelId } = expected;
const model = (expected as unknown as Record<string, Kept>)[modelId]!;

let app: TestApp;
beforeEach(async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-old-"));
  const database = gunzipSync(readFileSync(fixture("chunked-series.db.gz")));
  writeFileSync(path.join(dataDir, "server.db"), database);
  app = await TestApp.open({ dataDir });
});
afterEach(() => app.dispose());

const csvOf = async (id: string) =>
  (await askStudio(app, `runs/${encodeURIComponent(id)}/series.csv`)).text();
const digest = (text: string) => createHash("sha256").update(text).digest("hex");

/** What the old server answered, as far as sums in another order allow. */
const close = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, one: unknown) =>
    typeof one === "number" ? Number(one.toPrecision(12)) : one,
  );

it("has the same values as the server that stored them, at once and after restarts", async () => {
  for (let start = 0; start < 3; start++) {
    const runs = await listRuns(app, "sort=name");
    expect(close(runs)).toMatchObject(close(expected.runs) as object);
    for (const [id, kept] of [
      ["log", expected.log],
      [modelId, model],
    ] as const) {
      const { series, marks } = await getRun(app, id);
      expect(close(series)).toEqual(close(kept.series));
      expect(marks).toHaveLength(kept.marks);
    }
    expect(digest(await csvOf("log"))).toBe(expected.log.csv);
    expect(await csvOf(modelId)).toBe(model.csv);
    const [zoom] = await getSeries(app, "log", ["loss"], { from: "690", to: "710" });
    const plain = (one: number) => (Number.isFinite(one) ? one : String(one));
    expect([[...zoom!.x], [...zoom!.mean].map(plain)]).toEqual([
      expected.zoom[0]!.x,
      expected.zoom[0]!.mean,
    ]);
    const [whole, left] = await getSeries(app, "log", ["loss"], { buckets: "20" });
    expect([whole!.total, Math.max(...whole!.max)]).toEqual([1400, 1]);
    expect([left!.total, Math.max(...left!.max.filter(Number.isFinite))]).toEqual([100, 99.5]);
    await app.restart();
  }
});

it("goes on with the step that was under way", async () => {
  const sum = async (seq: number, tokens: number[]) => {
    const { requestId } = await app.call("forwardBackward", passBody(modelId, seq, [tokens]));
    return ((await app.result(requestId))["metrics"] as Record<string, number>)["loss:sum"]!;
  };
  const last = () => getSeries(app, modelId, ["loss:sum"]);
  const [before] = await last();
  expect([...before!.x]).toEqual([0, 1, 2, 3]);
  const added = await sum(11, [4, 5, 6, 7]);
  const [after] = await last();
  expect([...after!.x]).toEqual([0, 1, 2, 3]);
  expect(after!.mean[3]).toBeCloseTo(before!.mean[3]! + added, 4);
});

it("goes on with a run that its logger appends to, while its points are moved", async () => {
  const lines = Array.from({ length: 100 }, (_, index) =>
    JSON.stringify({
      run: "log",
      writer: "v",
      n: 204 + index,
      kind: "metrics",
      step: 1400 + index,
      metrics: { loss: 5 },
    }),
  );
  const body = lines.join("\n");
  const posted = app.handle(new Request("http://localhost/api/v1/logs", { method: "POST", body }));
  expect((await posted).status).toBe(200);
  for (let start = 0; start < 2; start++) {
    const [whole] = await getSeries(app, "log", ["loss"], { buckets: "20" });
    expect(whole!.total).toBe(1500);
    const rows = (await csvOf("log")).trim().split("\n");
    expect(rows).toHaveLength(1 + 1300 + 300);
    await app.restart();
  }
});
