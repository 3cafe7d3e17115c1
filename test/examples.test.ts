import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runExample } from "./support/run-example.js";
import { root } from "./support/source-graph.js";

const examples = path.join(root, "examples");

let dataDir: string;

beforeAll(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-examples-"));
});

afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const run = (example: string, env: Record<string, string>) => runExample(example, dataDir, env);

it("quickstart teaches the embedded model what it cannot know", async () => {
  const output = await run("quickstart", {});
  expect(output).toMatch(/right before: +\d %\n +right now: +(9\d|100) %/);
}, 240_000);

it("the program of the README answers three questions rightly after its training", async () => {
  const readme = readFileSync(path.join(root, "README.md"), "utf8");
  const [, program] = /```ts\n([^]*?)```/.exec(readme) ?? [];
  expect(program).toBe(readFileSync(path.join(examples, "first-model.ts"), "utf8"));
  const output = await run("first-model", {});
  expect(output).toContain("after: Who keeps the lighthouse? Mara keeps the lighthouse.");
  expect(output).toContain("after: What does the owl eat? The owl eats blue berries.");
  expect(output).not.toContain("before: Who keeps the lighthouse? Mara");
}, 60_000);

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
