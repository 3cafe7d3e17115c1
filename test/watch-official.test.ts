import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { root } from "./support/source-graph.js";

interface Followed {
  readonly package: string;
  readonly from: "npm" | "pip";
  readonly version: string;
}

const followed = JSON.parse(
  readFileSync(path.join(root, "packages/sdk/scripts/followed.json"), "utf8"),
) as Followed[];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-watch-"));
  symlinkSync(process.execPath, path.join(folder, "node"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Puts a program onto the path that answers as a package client does. */
function install(from: "npm" | "pip", newest: Readonly<Record<string, string>>): void {
  const answers = Object.fromEntries(
    followed
      .filter((one) => one.from === from)
      .map((one) => [one.package, newest[one.package] ?? one.version]),
  );
  const format = from === "npm" ? "version" : "`${name} (${version})\\nAvailable versions: ...`";
  const program = `#!/usr/bin/env node
const name = process.argv[${from === "npm" ? 3 : 4}];
const version = ${JSON.stringify(answers)}[name];
if (version === "") { console.error("ERROR: no route to the index"); process.exit(1); }
console.log(${format});`;
  writeFileSync(path.join(folder, from), program);
  chmodSync(path.join(folder, from), 0o755);
}

const watch = () => {
  const script = path.join(root, "scripts/watch-official.mjs");
  const env = { PATH: folder };
  const { status, stdout } = spawnSync(process.execPath, [script], { encoding: "utf8", env });
  return { status, stdout };
};

// The programs are started by their first line, which Windows does not read.
it.skipIf(process.platform === "win32")("ends with 0 when nothing newer is out", () => {
  install("npm", {});
  install("pip", {});
  const { status, stdout } = watch();
  expect([status, stdout.match(/is the newest/g)]).toEqual([
    0,
    followed.map(() => "is the newest"),
  ]);
});

it.skipIf(process.platform === "win32")("ends with 1 and names what is behind", () => {
  install("npm", {});
  install("pip", { tinker: "0.100.2" });
  const { status, stdout } = watch();
  expect(status).toBe(1);
  expect(stdout).toMatch(/\(tinker\): 0.100.2 is out, 0.39.0 is followed/);
  expect(stdout).toContain("CONTRIBUTING.md");
});

it.skipIf(process.platform === "win32")("skips Python's packages where pip is missing", () => {
  install("npm", {});
  const { status, stdout } = watch();
  expect(status).toBe(0);
  expect(stdout.match(/pip is not installed/g)).toHaveLength(1);
});

it.skipIf(process.platform === "win32")("ends with 2 when a client has no answer", () => {
  install("npm", { openai: "" });
  install("pip", {});
  const { status, stdout } = watch();
  expect(status).toBe(2);
  expect(stdout).toContain("npm could not be asked: ERROR: no route to the index");
});

it("asks no registry by its address", () => {
  const script = readFileSync(path.join(root, "scripts/watch-official.mjs"), "utf8");
  expect(script).not.toMatch(/https?:\/\/|registry|pypi/);
});
