import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ServiceClient } from "tinker-ts";
import { RunLog } from "tinker-ts/run-log";
import type { LogsAnswer, StudioExhibits, StudioLog, StudioRun, StudioRuns } from "tinker-ts/wire";
import { startServer, type RunningServer } from "../../src/index.js";
import { TestApp, type TestAppOptions } from "../support/test-app.js";
import {
  askStudio,
  getRun,
  getSeries,
  getStudio,
  listRuns,
  postStudio,
  trainSteps,
} from "./support.js";

let app: TestApp;
beforeEach(async () => {
  app = await TestApp.open();
});
afterEach(() => app.dispose());

async function post(lines: readonly unknown[], key?: string): Promise<Response> {
  const body = lines.map((line) => JSON.stringify(line)).join("\n");
  const headers = key === undefined ? {} : { "x-api-key": key };
  return app.handle(new Request("http://localhost/api/v1/logs", { method: "POST", body, headers }));
}

const head = (n: number, writer = "w1") => ({ run: "r1", writer, n });
const open = (n = 1, writer = "w1", extra = {}) => ({
  ...head(n, writer),
  kind: "open",
  name: "garden",
  ...extra,
});
const metrics = (n: number, step: number, values: object, writer = "w1") => ({
  ...head(n, writer),
  kind: "metrics",
  step,
  metrics: values,
});

const tooMany = Object.fromEntries(Array.from({ length: 2001 }, (_, n) => [`m${n}`, n]));

describe("a long batch", () => {
  const lines = (count: number) => [
    open(),
    ...Array.from({ length: count - 1 }, (_, index) => metrics(index + 2, index, { loss: index })),
  ];

  it("lets others have their turn before it is stored, and is stored in the order it came", async () => {
    const order: string[] = [];
    const batches = [
      post(lines(6000)).then(() => order.push("long")),
      post([metrics(6001, 5999, { loss: 1 })]).then(() => order.push("next")),
      app.session().then(() => order.push("session")),
    ];
    await Promise.all(batches);
    expect(order).toEqual(["session", "long", "next"]);
    const [loss] = await getSeries(app, "r1", ["loss"]);
    expect(loss!.count!.reduce((sum, one) => sum + one, 0)).toBe(6000);
  });

  it("says what of it is stored when a line is refused, and the rest can be sent again", async () => {
    const bad = { ...head(1, "w2"), kind: "text", text: "not opened" };
    const refused = await post([...lines(6000), bad]);
    expect(refused.status).toBe(400);
    const refusal = await refused.text();
    expect(refusal).toContain("line 6001: kind:");
    const kept = Number(/the lines before line (\d+) are stored/.exec(refusal)?.[1]) - 1;
    expect(kept).toBeGreaterThan(1);
    const answer = (await (await post(lines(6000).slice(0, kept))).json()) as LogsAnswer;
    expect(answer.stored).toEqual({ r1: { w1: kept } });
    expect((await post(lines(6000))).status).toBe(200);
    const [loss] = await getSeries(app, "r1", ["loss"]);
    expect(loss!.count!.reduce((sum, one) => sum + one, 0)).toBe(5999);
  });
});

describe("lines of a logger", () => {
  it("make a run with its metrics, marks and texts", async () => {
    const config = { num_epochs: 2, learning_rate: 1e-3 };
    const lines = [
      open(1, "w1", { tags: ["sft"], group: "sweep", config }),
      metrics(2, 0, { train_mean_nll: 2.5, word: "text", "progress/done_frac": 0.5 }),
      metrics(3, 1, { train_mean_nll: "NaN", "test/nll": "Infinity" }),
      { ...head(4), kind: "text", text: "hello", level: "warning", time: 1700000000.5 },
      { ...head(5), kind: "checkpoint", name: "000001", step: 1, sampler: "tinker://a/b/c" },
      { ...head(6), kind: "span", step: 1, spans: [{ name: "s", start: 0, end: 1 }] },
      { ...head(7), kind: "close", dropped: 3 },
    ];
    const answer = (await (await post(lines)).json()) as LogsAnswer;
    expect(answer.stored).toEqual({ r1: { w1: 7 } });
    const run = await getRun(app, "r1");
    expect(run).toMatchObject({
      name: "garden",
      source: "log",
      kind: "supervised",
      group: "sweep",
      tags: ["sft"],
      status: "completed",
      step: 1,
      progress: 0.5,
      dropped: 3,
      config,
      nll: { key: "train_mean_nll", first: 2.5, last: "NaN", nonFinite: 1 },
    });
    expect(run.marks).toMatchObject([{ kind: "checkpoint", x: 1 }]);
    const [nll, test] = await getSeries(app, "r1", ["train_mean_nll", "test/nll"]);
    expect([...nll!.x]).toEqual([0, 1]);
    expect([...nll!.nan!]).toEqual([0, 1]);
    expect([...test!.plusInfinity!]).toEqual([1]);
    const { lines: text } = await getStudio<StudioLog>(app, "runs/r1/log");
    expect(text).toMatchObject([{ n: 0, at: 1_700_000_000_500, level: "warning", text: "hello" }]);
    expect(await getStudio(app, "runs/r1/spans")).toMatchObject({ steps: [{ step: 1 }] });
  });

  it("count once, however often they are sent", async () => {
    const lines = [open(), metrics(2, 0, { a: 1 }), metrics(3, 1, { a: 2 })];
    await post(lines);
    const again = await post([...lines, metrics(4, 2, { a: 3 })]);
    expect(((await again.json()) as LogsAnswer).stored).toEqual({ r1: { w1: 4 } });
    const [a] = await getSeries(app, "r1", ["a"]);
    expect([...a!.mean]).toEqual([1, 2, 3]);
  });

  it("are refused together when one of them is wrong, by its number", async () => {
    const response = await post([open(), metrics(2, 0, { a: 1 }), { ...head(3), kind: "nothing" }]);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("line 3: kind");
    expect(await listRuns(app)).toEqual([]);
  });

  it("are refused together also where one of them takes long", async () => {
    // Text that is written as six times as much: longer than a part of a long batch may take.
    const config = { note: "\u0001".repeat(650_000) };
    const steps = Array.from({ length: 6 }, (_, x) => metrics(x + 2, x, { a: x }));
    const lines = [open(1, "w1", { config }), ...steps, { ...head(8), kind: "text" }];
    const response = await post(lines);
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("line 8: text") as unknown,
    ]);
    expect(await listRuns(app)).toEqual([]);
  });

  it("of a later attempt replace what an earlier one had logged beyond its beginning", async () => {
    await post([open(), ...[0, 1, 2, 3].map((x) => metrics(x + 2, x, { a: x }))]);
    await post([open(1, "w2"), ...[2, 3].map((x) => metrics(x, x, { a: 10 * x }, "w2"))]);
    const [current, left] = await getSeries(app, "r1", ["a"]);
    expect([[...current!.x], [...current!.mean]]).toEqual([
      [0, 1, 2, 3],
      [0, 1, 20, 30],
    ]);
    expect(left).toMatchObject({ isAbandoned: true, attempt: 1 });
    expect([...left!.mean]).toEqual([2, 3]);
    expect(await getRun(app, "r1")).toMatchObject({ attempt: 2 });
  });

  it("that were refused leave nothing behind: the same steps in a good batch are no new attempt", async () => {
    await post([open(), metrics(2, 0, { a: 0 })]);
    const steps = [1, 2, 3].map((x) => metrics(x + 2, x, { a: x }));
    const refused = await post([...steps, { ...head(6), kind: "text" }]);
    expect(await refused.text()).toContain("line 4: text");
    expect((await post(steps)).status).toBe(200);
    expect(await getRun(app, "r1")).toMatchObject({ attempt: 1 });
    expect([...(await getSeries(app, "r1", ["a"]))[0]!.mean]).toEqual([0, 1, 2, 3]);
  });

  it("go on after a restart where they were, and are known to go back", async () => {
    await post([open(), metrics(2, 7, { a: 7 })]);
    await app.restart();
    await post([{ ...head(3), kind: "metrics", metrics: { b: 1 } }]);
    expect([...(await getSeries(app, "r1", ["b"]))[0]!.x]).toEqual([7]);
    await app.restart();
    await post([metrics(4, 5, { a: 5 }), metrics(5, 6, { a: 6 })]);
    const [current, left] = await getSeries(app, "r1", ["a"]);
    expect([...current!.x]).toEqual([5, 6]);
    expect(left).toMatchObject({ isAbandoned: true, attempt: 1 });
    expect(await getRun(app, "r1")).toMatchObject({ attempt: 2 });
  });

  it("know the step that a checkpoint was saved at, also once they have become columns", async () => {
    await post([open(), ...Array.from({ length: 300 }, (_, x) => metrics(x + 2, x, { a: x }))]);
    await app.restart();
    await post([{ ...head(302), kind: "checkpoint", name: "end" }]);
    expect((await getRun(app, "r1")).marks).toMatchObject([{ kind: "checkpoint", x: 300 }]);
  });

  it("of a program that another has replaced stay with its own attempt", async () => {
    await post([open(), metrics(2, 0, { a: 0 }), metrics(3, 1, { a: 1 })]);
    await post([open(1, "w2"), metrics(2, 0, { a: 10 }, "w2")]);
    await post([metrics(4, 2, { a: 2 })]);
    await post([metrics(3, 1, { a: 11 }, "w2")]);
    await post([{ ...head(5), kind: "close", status: "failed" }]);
    expect(await getRun(app, "r1")).toMatchObject({ status: "running", attempt: 2 });
    const [current, left] = await getSeries(app, "r1", ["a"]);
    expect([...current!.mean]).toEqual([10, 11]);
    expect([...left!.mean]).toEqual([0, 1, 2]);
  });

  it("are refused for what they cannot say, by line and field", async () => {
    const refusals: readonly (readonly [string, object])[] = [
      ["rollouts", { kind: "rollouts", step: 1, rollouts: [null] }],
      ["examples", { kind: "examples", step: 1, examples: ["text"] }],
      ["step", { kind: "rollouts", step: "NaN", rollouts: [] }],
      ["step", { kind: "span", spans: [] }],
      ["model", { kind: "watch" }],
      // A name of 301 characters, with NUL, of half a character, of none; a list; too many.
      ...[
        { ["m".repeat(301)]: 1 },
        { "a\0b": 1 },
        { "a\ud800": 1 },
        { "": 1 },
        [1, 2],
        tooMany,
      ].map((values) => ["metrics", { kind: "metrics", step: 1, metrics: values }] as const),
    ];
    for (const [field, line] of refusals) {
      const response = await post([open(), { ...head(2), ...line }]);
      const problem = expect.stringContaining(`line 2: ${field}: `) as unknown;
      expect([response.status, await response.text()]).toEqual([400, problem]);
    }
    expect(await listRuns(app)).toEqual([]);
  });

  it("ignore numbers that no column holds", async () => {
    const body = [
      JSON.stringify(open()),
      '{"run":"r1","writer":"w1","n":2,"kind":"metrics","step":3,"metrics":{"a":1e999}}',
      '{"run":"r1","writer":"w1","n":3,"kind":"checkpoint","name":"c","step":1e999}',
      '{"run":"r1","writer":"w1","n":4,"kind":"text","text":"a\\u0000b"}',
      '{"run":"r1","writer":"w1","n":5,"kind":"close","dropped":1e999}',
    ].join("\n");
    const request = new Request("http://localhost/api/v1/logs", { method: "POST", body });
    expect((await app.handle(request)).status).toBe(200);
    const { marks, dropped } = await getRun(app, "r1");
    expect([marks[0]!.x, dropped]).toEqual([4, 0]);
    const { lines } = await getStudio<StudioLog>(app, "runs/r1/log");
    expect(lines).toMatchObject([{ text: "a\\0b" }]);
  });

  it("may bring the largest numbers there are, and times that are none", async () => {
    const steps = Array.from({ length: 700 }, (_, x) => x);
    const time = (x: number) => [1e300, -1e20, "NaN", null][x % 4];
    const lines = steps.map((x) => ({
      ...metrics(x + 2, x, { a: x % 2 ? 1e308 : 1 }),
      time: time(x),
    }));
    await post([open(), ...lines]);
    const points = async () => {
      const [a] = await getSeries(app, "r1", ["a"], { buckets: "10" });
      return [a!.total, Math.min(...a!.min), [...a!.max].every((max) => max > 1e38 && max < 1e39)];
    };
    expect(await points()).toEqual([700, 1, true]);
    // Closing waits until they have become columns, which must not stumble over their sum.
    await app.restart();
    expect(app.logLines.filter((line) => line.includes("could not be put in order"))).toEqual([]);
    expect(await points()).toEqual([700, 1, true]);
    const csv = await askStudio(app, "runs/r1/series.csv?keys=a");
    expect((await csv.text()).trim().split("\n")).toHaveLength(701);
  });

  it("join what the server has recorded of a model they watch", async () => {
    const modelId = await app.model(await app.session());
    await trainSteps(app, modelId, 2);
    await post([open(), { ...head(2), kind: "watch", model: modelId }, metrics(3, 0, { a: 1 })]);
    const runs = await listRuns(app);
    expect(runs).toMatchObject([{ id: "r1", models: [modelId], baseModel: "toy" }]);
    const [nll] = await getSeries(app, "r1", ["nll"]);
    expect([...nll!.x]).toEqual([0, 1]);
  });

  it("bring rollouts, which stay together with what they were worth", async () => {
    const rollouts = Array.from({ length: 20 }, (_, index) => ({
      group: Math.floor(index / 4),
      index: index % 4,
      reward: index === 7 ? 5 : 0,
      advantage: 0.5,
      tokens: [1, 2, 3],
      mask: [0, 1, 1],
      logprobs: [0, -0.5, -1.5],
      stop: "stop",
    }));
    await post([open(), { ...head(2), kind: "rollouts", step: 3, rollouts }]);
    const ask = () => getStudio<StudioExhibits>(app, "exhibits?run=r1&kind=rollout&order=-reward");
    await expect.poll(async () => (await ask()).exhibits.length).toBe(8);
    const { exhibits, seen } = await ask();
    expect(seen).toBe(20);
    expect(exhibits[0]).toMatchObject({ reward: 5, group: 1, index: 3, nll: 1, trainedCount: 2 });
    expect(exhibits[0]!.stopReason).toBe("stop");
    expect(await getStudio(app, `exhibits/${exhibits[0]!.id}`)).toMatchObject({
      tokens: { weight: [0, 1, 1], samplerLogprob: [0, -0.5, -1.5], advantage: [0, 0.5, 0.5] },
    });
  });

  it("belong to their owner", async () => {
    const other = await TestApp.open({ apiKeys: ["tml-alice-key", "tml-bob-key"] });
    const first = app;
    app = other;
    try {
      expect((await post([open()])).status).toBe(401);
      expect((await post([open()], "tml-alice-key")).status).toBe(200);
      expect((await askStudio(app, "runs/r1", { key: "tml-bob-key" })).status).toBe(404);
      expect(await listRuns(app, "", { key: "tml-bob-key" })).toEqual([]);
    } finally {
      app = first;
      await other.dispose();
    }
  });
});

describe("a RunLog with a service", () => {
  let server: RunningServer;
  let folder: string;
  beforeEach(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-run-"));
    const dataDir = path.join(folder, "data");
    server = await startServer({ port: 0, dataDir, logLevel: "silent" });
  });
  afterEach(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is shown live, gets the requests of people, and ends as completed", async () => {
    const service = new ServiceClient({ baseUrl: server.url, apiKey: "tml-x" });
    const run = await RunLog.open({ folder: path.join(folder, "garden"), service, tags: ["t"] });
    run.log({ a: 1 }, { step: 0 });
    await run.span("sampling", () => 1);
    const get = async <T>(what: string, init?: RequestInit): Promise<T> => {
      const headers = { "x-tinker-studio": "1" };
      const response = await fetch(`${server.url}/studio/api/${what}`, { headers, ...init });
      return (await response.json()) as T;
    };
    type Runs = { runs: { id: string; name: string; status: string; step: number }[] };
    await expect
      .poll(async () => (await get<Runs>("runs")).runs, { timeout: 10_000 })
      .toMatchObject([{ name: "garden", tags: ["t"], step: 0, status: "running" }]);
    const { id } = (await get<Runs>("runs")).runs[0]!;
    await fetch(`${server.url}/studio/api/runs/${id}/stop`, {
      method: "POST",
      headers: { "x-tinker-studio": "1" },
      body: '{"how":"save"}',
    });
    await expect
      .poll(
        () => {
          run.log({ a: 2 }, { step: 1 });
          return run.controls.stop;
        },
        { timeout: 10_000 },
      )
      .toBe(true);
    expect(run.stopRequested.aborted).toBe(true);
    await run.close();
    expect((await get<Runs>("runs")).runs).toMatchObject([{ status: "completed" }]);
    await service.close();
  });

  it("loses the record that the server refuses, and none of those beside it", async () => {
    const service = new ServiceClient({ baseUrl: server.url, apiKey: "tml-x" });
    const run = await RunLog.open({ folder: path.join(folder, "odd"), service });
    for (let step = 0; step < 60; step++) {
      run.log(step === 30 ? { ["m".repeat(301)]: 1 } : { a: step }, { step });
    }
    await run.close();
    const get = async (what: string) => fetch(`${server.url}/studio/api/${what}`);
    const { runs } = (await (await get("runs")).json()) as { runs: StudioRun[] };
    expect(runs).toMatchObject([{ status: "completed", step: 59 }]);
    const csv = await (await get(`runs/${runs[0]!.id}/series.csv?keys=a`)).text();
    expect(csv.trim().split("\n")).toHaveLength(60);
    const log = await (await get(`runs/${runs[0]!.id}/log`)).text();
    expect(log).toContain("line 1: metrics: ");
    await service.close();
  });

  it("sends what waits once the server is back, and nothing twice", async () => {
    const { url } = server;
    const { port } = new URL(url);
    const service = new ServiceClient({ baseUrl: url, apiKey: "tml-x" });
    const run = await RunLog.open({ folder: path.join(folder, "away"), service });
    await server.close();
    for (let step = 0; step < 20; step++) run.log({ a: step }, { step });
    server = await startServer({
      port: Number(port),
      dataDir: path.join(folder, "data"),
      logLevel: "silent",
    });
    await run.close();
    const response = await fetch(`${url}/studio/api/runs`);
    const { runs } = (await response.json()) as { runs: { id: string }[] };
    const csv = await fetch(`${url}/studio/api/runs/${runs[0]!.id}/series.csv?keys=a`);
    expect((await csv.text()).trim().split("\n")).toHaveLength(21);
    await service.close();
  });
});

it("lets a person ask a loop for values, and take them back", async () => {
  await post([open()]);
  await postStudio(app, "runs/r1/controls", { values: { learning_rate: 0.1, mode: "x" } });
  await postStudio(app, "runs/r1/controls", { values: { mode: null } });
  const answer = (await (await post([metrics(2, 0, { a: 1 })])).json()) as LogsAnswer;
  expect(answer.controls["r1"]).toEqual({
    version: 2,
    stop: false,
    values: { learning_rate: 0.1 },
  });
});

describe("runs of several owners", () => {
  const alice = "tml-alice-key";
  const bob = "tml-bob-key";
  const withKeys = async (options: TestAppOptions, work: () => Promise<void>): Promise<void> => {
    const [first, other] = [app, await TestApp.open({ apiKeys: [alice, bob], ...options })];
    app = other;
    try {
      await work();
    } finally {
      app = first;
      await other.dispose();
    }
  };
  const text = (n: number, line: string) => ({ ...head(n), kind: "text", text: line });

  it("may have the same name, and are found by it", async () => {
    await withKeys({}, async () => {
      for (const [key, loss] of [
        [alice, 1],
        [bob, 2],
      ] as const) {
        const answer = await post([open(), metrics(2, 0, { loss })], key);
        expect(await answer.json()).toMatchObject({ stored: { r1: { w1: 2 } } });
      }
      for (const [key, loss] of [
        [alice, 1],
        [bob, 2],
      ] as const) {
        expect(await listRuns(app, "", { key })).toHaveLength(1);
        const [series] = await getSeries(app, "r1", ["loss"], {}, { key });
        expect([...series!.mean]).toEqual([loss]);
        expect(await getRun(app, "r1", { key })).toMatchObject({ name: "garden" });
      }
    });
  });

  it("keep the newest text of their owner, and cost no other owner a line", async () => {
    await withKeys({ limits: { maxLogLineBytes: 50_000 } }, async () => {
      await post([open(), text(2, "of alice")], alice);
      const lines = Array.from({ length: 3000 }, (_, n) =>
        text(n + 2, `line ${n} ${"x".repeat(40)}`),
      );
      await post([open(), ...lines], bob);
      await post([text(3002, "the last one")], bob);
      const all = async (key: string) => {
        const log = await getStudio<StudioLog>(app, "runs/r1/log?limit=5000", { key });
        return log.lines.map((line) => line.text);
      };
      expect(await all(alice)).toEqual(["of alice"]);
      const kept = await all(bob);
      expect(kept.at(-1)).toBe("the last one");
      expect(kept.join("").length).toBeLessThan(50_100);
      expect(kept.length).toBeGreaterThan(10);
    });
  });

  it("are searched line by line, and shown a page at a time", async () => {
    await withKeys({}, async () => {
      const lines = Array.from({ length: 1500 }, (_, n) =>
        text(n + 2, n % 500 === 7 ? `Needle ${n}` : `hay ${n}`),
      );
      await post([open(), ...lines], bob);
      const ask = async (query: string) =>
        (await getStudio<StudioLog>(app, `runs/r1/log?${query}`, { key: bob })).lines.map(
          ({ n }) => n,
        );
      expect(await ask("q=needle")).toEqual([7, 507, 1007]);
      expect(await ask("q=needle&limit=2")).toEqual([507, 1007]);
      expect(await ask("q=needle&after=7&limit=1")).toEqual([507]);
      expect(await ask("before=3&limit=2")).toEqual([1, 2]);
      const long = Array.from({ length: 500 }, (_, n) => text(n + 1502, "x".repeat(20_000)));
      await post(long.slice(0, 200), bob);
      await post(long.slice(200, 400), bob);
      expect((await ask("limit=5000")).length).toBeLessThan(400);
    });
  });

  it("are listed by key, whatever changes between two pages", async () => {
    await withKeys({}, async () => {
      const runs = Array.from({ length: 250 }, (_, n) => ({
        ...open(),
        run: `run-${n}`,
        name: `n${n}`,
      }));
      await post(runs, bob);
      const seen: string[] = [];
      let cursor: string | null = "";
      for (let page = 0; cursor !== null; page++) {
        const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
        const answer: StudioRuns = await getStudio(app, `runs?limit=40${query}`, { key: bob });
        seen.push(...answer.runs.map(({ name }) => name));
        cursor = answer.cursor;
        if (page === 2) await post([{ ...open(1, "w9"), run: "fresh", name: "fresh" }], bob);
      }
      expect(new Set(seen).size).toBe(250);
      expect(seen).toHaveLength(250);
      const sorted: StudioRuns = await getStudio(app, "runs?sort=name&limit=3", { key: bob });
      expect(sorted.runs.map(({ name }) => name)).toEqual(["fresh", "n0", "n1"]);
      const next = `runs?sort=name&limit=2&cursor=${sorted.cursor}`;
      const rest: StudioRuns = await getStudio(app, next, { key: bob });
      expect(rest.runs.map(({ name }) => name)).toEqual(["n10", "n100"]);
    });
  });

  it("are refused when there are far too many", async () => {
    await withKeys({ limits: { maxRuns: 2 } }, async () => {
      const runs = Array.from({ length: 5 }, (_, n) => ({ ...open(), run: `run-${n}` }));
      expect((await post(runs.slice(0, 4), bob)).status).toBe(200);
      const refused = await post(runs.slice(4), bob);
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining("maxRuns"),
      ]);
      expect((await post(runs.slice(4), alice)).status).toBe(200);
    });
  });
});
