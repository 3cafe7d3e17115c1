import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { createLocalHandler } from "@tinker-ts/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "./support/source-graph.js";

const examples = path.join(root, "examples");
const compiled = path.join(root, "packages/cli/dist/examples");
const tinyModel = path.join(root, "packages/engine/test/fixtures/qwen3/model");

let dataDir: string;

beforeAll(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-examples-"));
});

afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

async function run(example: string, env: Record<string, string>): Promise<string> {
  const settings = { TINKER_BASE_URL: "local:", TINKER_TS_DATA_DIR: dataDir, ...env };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [path.join(compiled, `${example}.js`)],
    { env: { PATH: process.env["PATH"], HOME: dataDir, ...settings } },
  );
  return stdout;
}

// They end with 1, which is an error here, when their result is not there.
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

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

it("quickstart teaches the embedded model what it cannot know", async () => {
  const output = await run("quickstart", {});
  expect(output).toMatch(/right before: +\d %\n +right now: +(9\d|100) %/);
}, 240_000);

it.runIf(isFull)(
  "reinforcement turns what happens now and then into what always happens",
  async () => {
    const output = await run("reinforcement", { REINFORCEMENT_ROUNDS: "20" });
    expect(output).toContain("round 20");
  },
  240_000,
);

// A short run of learning with int8 weights is among the engine's tests.
it.runIf(process.env["TINKER_TS_TEST_FULL"] === "1").each(["int8", "int16"])(
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

it("own-data maps rows, is stopped, goes on, and has its answers judged", async () => {
  const output = await run("own-data", {});
  expect(output).toMatch(/^interrupted at step 1\d of 58\ncompleted: .*\nright: \d+ %/m);
}, 120_000);

it("the page lists every example", () => {
  const page = readFileSync(path.join(examples, "README.md"), "utf8");
  const programs = readdirSync(examples).filter((name) => name.endsWith(".ts"));
  expect(programs.filter((name) => !page.includes(`[${name}](${name})`))).toEqual([]);
});

it("examples use public entry points only", () => {
  const files = readdirSync(examples, { recursive: true, encoding: "utf8" });
  const specifiers = files
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [
      ...readFileSync(path.join(examples, name), "utf8").matchAll(/from "([^"]+)"/g),
    ])
    .map(([, specifier]) => specifier!);
  const outside = specifiers.filter((specifier) => !/^(node:|\.{1,2}\/)/.test(specifier));
  const isPublic = (specifier: string): boolean =>
    /^(tinker-ts|tinker-ts\/run-log|@tinker-ts\/cookbook\/\w+)$/.test(specifier);
  expect(outside.filter((specifier) => !isPublic(specifier))).toEqual([]);
  expect(specifiers.filter((specifier) => specifier.includes("../.."))).toEqual([]);
});
