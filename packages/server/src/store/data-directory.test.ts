import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { makeDataDirectory } from "./data-directory.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-directory-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it("is made with the folders above it, for its owner alone, and may be there", () => {
  const deep = path.join(folder, "a/b/c");
  makeDataDirectory(deep);
  makeDataDirectory(deep);
  expect(statSync(deep).mode & 0o777).toBe(0o700);
});

it("is refused by its name where a file stands", () => {
  writeFileSync(path.join(folder, "file"), "");
  expect(() => makeDataDirectory(path.join(folder, "file/data"))).toThrow(
    /The data directory \S+\/file\/data cannot be made: .*TINKER_TS_DATA_DIR/,
  );
});

it.runIf(process.platform === "linux")("is refused at once where no folder can be made", () => {
  expect(() => makeDataDirectory("/proc/tinker-ts/data")).toThrow(/cannot be made/);
});
