import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "./support/source-graph.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const folder = path.join(root, "docs/cookbook");
const require = createRequire(import.meta.url);

interface Block {
  readonly page: string;
  /** Among all blocks of the page. */
  readonly index: number;
  readonly language: string;
  readonly text: string;
}

const blocks = readdirSync(folder)
  .filter((name) => name.endsWith(".md"))
  .flatMap((name): Block[] => {
    const text = readFileSync(path.join(folder, name), "utf8");
    const found = text.matchAll(/^```(\w*)\n([^]*?)^```$/gm);
    const page = path.parse(name).name;
    return [...found].map(([, language = "", body = ""], index) => {
      return { page, index, language, text: body };
    });
  });

/** Programs, modules, and parts of such that say what they import. */
const programs = blocks.filter(
  ({ language, text }) => language === "ts" && text.startsWith("import "),
);
const pages = [
  "distillation",
  "environments",
  "losses",
  "preferences",
  "recipes",
  "rl",
  "tools",
] as const;
const first = (page: string): Block | undefined =>
  programs.find((block) => block.page === page && block.index === 0);
/** A part of a program uses what the page made before. */
const isOfPart = (error: string): boolean =>
  /TS18004|TS2304/.test(error) && !pages.some((page) => error.includes(`/${page}-0.ts(`));
const nameOf = ({ page, index }: Block): string => `${page}-${index}.ts`;

describe("the pages of the cookbook", () => {
  let workplace: string;

  beforeAll(() => {
    mkdirSync(path.join(root, ".cache"), { recursive: true });
    // Inside the clone, where the packages can be found by their names.
    workplace = mkdtempSync(path.join(root, ".cache/programs-"));
    for (const block of programs) writeFileSync(path.join(workplace, nameOf(block)), block.text);
    writeFileSync(path.join(workplace, "package.json"), JSON.stringify({ type: "module" }));
  });

  afterAll(() => rmSync(workplace, { recursive: true, force: true }));

  it.each(pages)("%s begins with a program", (page) => {
    expect(first(page)).toBeDefined();
  });

  it("have programs that compile under strict", async () => {
    const config = {
      extends: path.join(root, "tsconfig.base.json"),
      compilerOptions: {
        noEmit: true,
        composite: false,
        incremental: false,
        lib: ["ES2023", "ESNext.Disposable"],
        types: ["node"],
      },
      include: ["*.ts"],
    };
    writeFileSync(path.join(workplace, "tsconfig.json"), JSON.stringify(config));
    const compiler = path.join(path.dirname(require.resolve("typescript/package.json")), "bin/tsc");
    const compiled = promisify(execFile)(process.execPath, [compiler, "-p", workplace]);
    const output = await compiled.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    );
    const errors = output.split("\n").filter((line) => line !== "" && !isOfPart(line));
    expect(errors).toEqual([]);
  }, 60_000);

  it.runIf(isFull).each(pages)(
    "%s: its first program runs as printed",
    async (page) => {
      const cwd = path.join(workplace, page);
      mkdirSync(cwd);
      const loader = pathToFileURL(require.resolve("tsx")).href;
      const file = path.join(workplace, nameOf(first(page)!));
      const env = { PATH: process.env["PATH"], HOME: cwd, TINKER_TS_DATA_DIR: cwd };
      const { stdout } = await promisify(execFile)(process.execPath, ["--import", loader, file], {
        cwd,
        env,
      });
      expect(stdout).not.toBe("");
    },
    300_000,
  );
});
