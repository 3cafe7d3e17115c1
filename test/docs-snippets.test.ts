import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "./support/source-graph.js";

/*
 * Compiles every TypeScript snippet of every page. Names that the text around a snippet has introduced are declared in
 * snippets/names.d.ts. A snippet that begins with the path of a source file shows what such a file has, and is left out.
 */

const pages = [
  "README.md",
  "docs",
  "docs/tutorial",
  "docs/cookbook",
  "examples",
  "packages",
].flatMap((place) => {
  if (place.endsWith(".md")) return [place];
  const names = readdirSync(path.join(root, place));
  const readmes = names.map((name) => `${place}/${name}/README.md`);
  return place === "packages"
    ? readmes.filter((file) => existsSync(path.join(root, file)))
    : names.filter((name) => name.endsWith(".md")).map((name) => `${place}/${name}`);
});

interface Snippet {
  readonly name: string;
  readonly text: string;
}

const snippets = pages.flatMap((page): Snippet[] => {
  const text = readFileSync(path.join(root, page), "utf8");
  return [...text.matchAll(/^```(?:ts|typescript)\n([^]*?)^```$/gm)].map((match, index) => ({
    name: `${page.replaceAll("/", "-").replace(/\.md$/, "")}-${index + 1}.ts`,
    text: match[1] ?? "",
  }));
});
const sourceOf = ({ text }: Snippet): string | undefined =>
  /^\/\/ (packages\/\S+\.ts)\n/.exec(text)?.[1];

let workplace = "";
beforeAll(() => {
  mkdirSync(path.join(root, ".cache"), { recursive: true });
  // Inside the clone, where the packages can be found by their names.
  workplace = mkdtempSync(path.join(root, ".cache/snippets-"));
});
afterAll(() => rmSync(workplace, { recursive: true, force: true }));

it("snippets of source files name files that exist", () => {
  const named = snippets.flatMap((snippet) => sourceOf(snippet) ?? []);
  expect(named.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
});

it("every snippet of every page compiles under strict", async () => {
  const compiled = snippets.filter((snippet) => sourceOf(snippet) === undefined);
  expect(compiled.length).toBeGreaterThan(50);
  for (const { name, text } of compiled) {
    writeFileSync(path.join(workplace, name), `${text}\nexport {};\n`);
  }
  cpSync(path.join(root, "test/snippets/names.d.ts"), path.join(workplace, "names.d.ts"));
  writeFileSync(path.join(workplace, "package.json"), '{"type":"module"}');
  const compilerOptions = {
    noEmit: true,
    composite: false,
    incremental: false,
    lib: ["ES2023", "ESNext.Disposable"],
    types: ["node"],
  };
  const config = {
    extends: path.join(root, "tsconfig.base.json"),
    compilerOptions,
    include: ["*.ts"],
  };
  writeFileSync(path.join(workplace, "tsconfig.json"), JSON.stringify(config));
  const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
  const compiler = path.join(path.dirname(manifest), "bin/tsc");
  const output = await promisify(execFile)(process.execPath, [compiler, "-p", workplace]).then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  expect(output.split("\n").filter((line) => line !== "")).toEqual([]);
}, 60_000);
