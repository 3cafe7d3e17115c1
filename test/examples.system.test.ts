import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLocalHandler } from "@tinker-ts/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runExample } from "./support/run-example.js";
import { root } from "./support/source-graph.js";

const tinyModel = path.join(root, "packages/engine/test/fixtures/qwen3/model");
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

let dataDir: string;

beforeAll(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-examples-"));
});

afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const run = (example: string, env: Record<string, string>) => runExample(example, dataDir, env);

it("custom-loss trains with a loss of one's own", async () => {
  const output = await run("custom-loss", { TINKER_MODEL: tinyModel });
  expect(output).toMatch(/^step 30: \d+ % satisfied$/m);
  // What it logged is what the studio shows.
  const server = await createLocalHandler({ dataDir, logLevel: "silent" });
  const answer = await server.fetch(new Request("http://localhost/studio/api/runs"));
  await server.close();
  const { runs } = (await answer.json()) as { runs: unknown[] };
  expect(runs).toMatchObject([{ name: "custom-loss", status: "completed", step: 30 }]);
}, 60_000);

it("resume ends up where it would have been without the crash", async () => {
  const output = await run("resume", { TINKER_MODEL: tinyModel });
  expect(output).toContain("Resumed after step 6: the other 6 losses are the same.");
}, 60_000);

it("own-data maps rows, is stopped, goes on, and has its answers judged", async () => {
  const output = await run("own-data", {});
  expect(output).toMatch(/^interrupted at step 1\d of 58\ncompleted: .*\nright: \d+ %/m);
}, 120_000);

it.runIf(isFull)(
  "reinforcement turns what happens now and then into what always happens",
  async () => {
    const output = await run("reinforcement", { REINFORCEMENT_ROUNDS: "20" });
    expect(output).toContain("round 20");
  },
  240_000,
);

// A short run of learning with int8 weights is among the engine's tests.
it.runIf(isFull).each(["int8", "int16"])(
  "quickstart and reinforcement reach their goals with int8 weights and activations in %s",
  async (activations) => {
    const precision = { TINKER_TS_WEIGHTS: "int8", TINKER_TS_ACTIVATIONS: activations };
    const taught = await run("quickstart", precision);
    expect(taught).toMatch(/right before: +\d %\n +right now: +(9\d|100) %/);
    expect(await run("reinforcement", precision)).toContain("round 20");
  },
  600_000,
);

// What it does is part of the next one.
it.runIf(isFull)(
  "sft turns a file of conversations into an adapter",
  async () => {
    const output = await run("sft", {});
    expect(output).toMatch(/^Saved tinker:\/\/\S+\/sampler_weights\/final/m);
  },
  120_000,
);
