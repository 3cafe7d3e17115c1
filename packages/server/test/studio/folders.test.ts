import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { StudioExhibits, StudioLog } from "tinker-ts/wire";
import { openFile } from "../../src/studio/open-file.js";
import { TestApp } from "../support/test-app.js";
import { askStudio, getRun, getSeries, getStudio, listRuns } from "./support.js";

let app: TestApp;
let root: string;
let run: string;
beforeEach(async () => {
  root = mkdtempSync(path.join(tmpdir(), "tinker-ts-logs-"));
  run = path.join(root, "logs", "sft-1");
  mkdirSync(run, { recursive: true });
  app = await TestApp.open({ logFolders: [path.join(root, "logs")] });
});
afterEach(async () => {
  await app.dispose();
  rmSync(root, { recursive: true, force: true });
});

const write = (name: string, text: string): void => writeFileSync(path.join(run, name), text);
const only = async () => (await listRuns(app))[0]!;

it("opens a folder as Python wrote it: bare NaN, half a last line, two attempts, text", async () => {
  write("config.json", '{\n  "num_epochs": 1,\n  "model_name": "m",\n  "lora_rank": 16\n}');
  write(
    "metrics.jsonl",
    [
      '{"step": 0, "train_mean_nll": 3.0, "note": "NaN is a word here"}',
      '{"step": 0, "optim/lr": 0.1}',
      '{"step": 1, "train_mean_nll": NaN}',
      '{"step": 2, "train_mean_nll": -Infinity}',
      "not json",
      '{"step": 1, "train_mean_nll": 1.5}',
      '{"step": 2, "train_mean_nll": 1.0}',
      '{"step": 3, "train_mea',
    ].join("\n"),
  );
  write("logs.log", "main:1 [INFO] python train.py\nmain:9 [ERROR] it broke\nhalf");
  const row = await only();
  expect(row).toMatchObject({
    name: "sft-1",
    source: "folder",
    kind: "supervised",
    baseModel: "m",
    rank: 16,
    status: "running",
    attempt: 2,
    step: 2,
    dropped: 1,
  });
  const [current, left] = await getSeries(app, row.id, ["train_mean_nll"]);
  expect([[...current!.x], [...current!.mean]]).toEqual([
    [0, 1, 2],
    [3, 1.5, 1],
  ]);
  expect(left).toMatchObject({ isAbandoned: true, attempt: 1 });
  expect([[...left!.nan!], [...left!.minusInfinity!]]).toEqual([
    [1, 0],
    [0, 1],
  ]);
  const { lines } = await getStudio<StudioLog>(app, `runs/${row.id}/log?level=error`);
  expect(lines).toMatchObject([{ n: 1, text: "main:9 [ERROR] it broke" }]);
});

it("gives all points as CSV, with times where the lines have some", async () => {
  write(
    "metrics.jsonl",
    '{"step": 0, "a": 1}\n{"step": 0, "b": 2}\n{"step": 2, "_time": 1.5, "b": NaN}\n{"step": 1, "a": 3}\n',
  );
  const { id } = await only();
  const answer = await askStudio(app, `runs/${id}/series.csv`);
  expect(await answer.text()).toBe(
    ["attempt,step,time,a,b", "1,0,,1,2", "1,1,,3,", "1,2,1970-01-01T00:00:01.500Z,,NaN", ""].join(
      "\n",
    ),
  );
});

it("follows growth, and knows a run that is completed", async () => {
  write("metrics.jsonl", '{"step": 0, "a": 1}\n{"step": 1, "a"');
  const { id } = await only();
  appendFileSync(path.join(run, "metrics.jsonl"), ': 2}\n{"step": 2, "a": 3}\n');
  const values = async () => [...(await getSeries(app, id, ["a"]))[0]!.mean];
  await expect.poll(values, { timeout: 10_000 }).toEqual([1, 2, 3]);
  write("checkpoints.jsonl", '{"name": "final", "batch": 3, "final": true, "state_path": "x"}\n');
  await expect.poll(async () => (await only()).status, { timeout: 10_000 }).toBe("completed");
});

const metricsFile = () => path.join(run, "metrics.jsonl");
const lineOf = (step: number, value: number | string): string =>
  `{"step": ${step}, "a": ${value}}\n`;
/** The points of the metric `a`. */
const points = async () => {
  const { id } = await only();
  const text = await (await askStudio(app, `runs/${id}/series.csv?keys=a`)).text();
  const rows = text.trim().split("\n").slice(1);
  return rows.map((row) => row.split(",")).map((cells) => [Number(cells[1]), Number(cells[3])]);
};

it("has the points of all lines, however they came, and once after a restart", async () => {
  const values = ["1", "NaN", "-3", "Infinity", '"NaN"', "2", "-Infinity"];
  const steps = Array.from({ length: 3000 }, (_, index) => index - (index % 5 === 0 ? 1 : 0));
  const text = steps.map((step, index) => lineOf(step, values[index % 7]!)).join("");
  const last = new Map(
    steps.map((step, index) => [step, Number(values[index % 7]!.replaceAll('"', ""))]),
  );
  let start = 0;
  for (const end of [17, 1000, 1001, 30_000, text.length]) {
    appendFileSync(metricsFile(), text.slice(start, end));
    start = end;
    await points();
  }
  await expect.poll(points, { timeout: 10_000 }).toEqual([...last]);
  const { id } = await only();
  expect((await getRun(app, id)).series[0]).toMatchObject({ count: last.size });
  await app.restart();
  appendFileSync(metricsFile(), lineOf(5000, 8));
  await expect.poll(points, { timeout: 10_000 }).toEqual([...last, [5000, 8]]);
});

it("skips a line that is too long to be one, and goes on behind it", async () => {
  write("metrics.jsonl", `${lineOf(0, 1)}{"text": "${"x".repeat(5 << 20)}"}\n${lineOf(1, 2)}`);
  const { dropped } = await only();
  expect(dropped).toBe(1);
  appendFileSync(metricsFile(), lineOf(2, 3));
  const expected = [0, 1, 2].map((step) => [step, step + 1]);
  await expect.poll(points, { timeout: 10_000 }).toEqual(expected);
});

it("begins anew with another file of the same name, also when it came while the server was down", async () => {
  write("metrics.jsonl", `not json\n${lineOf(0, 1)}${lineOf(1, 2)}`);
  expect(await points()).toHaveLength(2);
  const replace = (step: number): void => {
    writeFileSync(path.join(root, "other"), `${lineOf(step, 50)}${lineOf(step + 1, 60)}`);
    renameSync(path.join(root, "other"), metricsFile());
  };
  replace(5);
  const five = [
    [5, 50],
    [6, 60],
  ];
  await expect.poll(points, { timeout: 10_000 }).toEqual(five);
  expect((await only()).dropped).toBe(0);
  await app.stop();
  replace(7);
  await app.start();
  await expect.poll(async () => (await only()).step, { timeout: 10_000 }).toBe(8);
  expect(await points()).toHaveLength(2);
});

it("shows a folder to every owner, and to none once it is not given any more", async () => {
  write("metrics.jsonl", lineOf(0, 1));
  const dataDir = path.join(root, "data");
  const open = (logFolders: string[]) =>
    TestApp.open({ dataDir, logFolders, apiKeys: ["tml-alice-key", "tml-bob-key"] });
  const shown = await open([path.join(root, "logs")]);
  for (const key of ["tml-alice-key", "tml-bob-key"]) {
    expect(await listRuns(shown, "", { key })).toMatchObject([{ name: "sft-1", step: 0 }]);
  }
  await shown.stop();
  const others = await open([]);
  expect(await listRuns(others, "", { key: "tml-alice-key" })).toEqual([]);
  await others.stop();
});

it("shows rollouts with their conversations as text", async () => {
  write("config.json", '{"loss_fn": "ppo"}');
  mkdirSync(path.join(run, "iteration_000004"));
  const row = (traj: number) => ({
    schema_version: 1,
    split: "train",
    group_idx: 0,
    traj_idx: traj,
    total_reward: traj,
    steps: [{ ob_len: 5, ac_len: 2, logs: { seen: "<b>" } }],
  });
  write(
    "iteration_000004/train_rollout_summaries.jsonl",
    [row(0), row(1)].map((one) => `${JSON.stringify(one)}\n`).join(""),
  );
  const talk = (content: string) => ({
    tag: "div",
    children: [],
    data: { type: "conversation", messages: [{ role: "assistant", content }] },
  });
  const tree = { root: { tag: "body", children: [talk("<script>"), talk("two")] } };
  write("iteration_000004/train_logtree.json", JSON.stringify(tree));
  const { id, kind } = await only();
  expect(kind).toBe("rl");
  const list = await getStudio<StudioExhibits>(app, `exhibits?run=${id}&kind=rollout`);
  expect(list).toMatchObject({ steps: [4], splits: ["train"], exhibits: [{ reward: 0 }, {}] });
  expect(await getStudio(app, `exhibits/${list.exhibits[0]!.id}`)).toMatchObject({
    messages: [{ role: "assistant", content: "<script>" }],
    tokenCount: 7,
    logs: ["seen: <b>"],
  });
});

it.skipIf(process.platform === "win32")(
  "reads no pipe and no link out of the folder, and shows the other runs",
  async () => {
    const outside = path.join(root, "outside.jsonl");
    writeFileSync(outside, '{"step": 0, "secret": 1}\n');
    for (const name of ["piped", "linked"]) {
      mkdirSync(path.join(root, "logs", name));
      writeFileSync(path.join(root, "logs", name, "config.json"), "{}");
    }
    execFileSync("mkfifo", [path.join(root, "logs/piped/metrics.jsonl")]);
    symlinkSync(outside, path.join(root, "logs/linked/metrics.jsonl"));
    write("metrics.jsonl", '{"step": 0, "loss": 2}\n');
    await expect.poll(() => listRuns(app)).toHaveLength(3);
    const runs = await listRuns(app);
    const keys = await Promise.all(
      runs.map(async ({ id }) => (await getRun(app, id)).series.map(({ key }) => key)),
    );
    expect(keys.flat()).toEqual(["loss"]);
  },
);

it("gives out the files of a run and nothing else, and HTML never as a page", async () => {
  write("config.json", "{}");
  write("train.html", "<script>alert(1)</script>");
  write("secret.txt", "no");
  writeFileSync(path.join(root, "outside.json"), '{"secret": 1}');
  symlinkSync(path.join(root, "outside.json"), path.join(run, "linked.json"));
  symlinkSync("/etc", path.join(root, "logs", "etc"));
  const { id } = await only();
  expect((await getRun(app, id)).files.map(({ name }) => name)).toEqual([
    "config.json",
    "train.html",
  ]);
  const page = await askStudio(app, `runs/${id}/files/train.html`);
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toBe("application/octet-stream");
  expect(page.headers.get("content-disposition")).toContain("attachment");
  for (const name of [
    "secret.txt",
    "linked.json",
    "../../outside.json",
    "..%2f..%2foutside.json",
    "%2e%2e/%2e%2e/outside.json",
    "iteration_000000/../../../outside.json",
    "/etc/passwd",
  ]) {
    const response = await askStudio(app, `runs/${id}/files/${name}`);
    expect([name, response.status]).toEqual([name, 404]);
  }
});

it("neither waits for a pipe nor follows a link out of the folder, and shows what is beside them", async () => {
  const pipe = path.join(root, "logs", "pipe");
  const link = path.join(root, "logs", "link");
  for (const folder of [pipe, link]) mkdirSync(folder);
  execFileSync("mkfifo", [path.join(pipe, "metrics.jsonl")]);
  writeFileSync(path.join(root, "outside.jsonl"), '{"step":0,"secret":1}\n');
  symlinkSync(path.join(root, "outside.jsonl"), path.join(link, "metrics.jsonl"));
  for (const folder of [pipe, link]) writeFileSync(path.join(folder, "config.json"), "{}");
  write("metrics.jsonl", '{"step":0,"loss":1}\n');
  const runs = await listRuns(app, "sort=name");
  const keys = await Promise.all(
    runs.map(async ({ id, name }) => [name, (await getRun(app, id)).series.map(({ key }) => key)]),
  );
  expect(keys).toEqual([
    ["link", []],
    ["pipe", []],
    ["sft-1", ["loss"]],
  ]);
  await app.stop();
});

it("does not open what took the place of a file since it was found", async () => {
  execFileSync("mkfifo", [path.join(run, "pipe")]);
  writeFileSync(path.join(root, "outside"), "secret");
  symlinkSync(path.join(root, "outside"), path.join(run, "link"));
  expect(await openFile(path.join(run, "pipe"))).toBeUndefined();
  expect(await openFile(path.join(run, "link"))).toBeUndefined();
});
