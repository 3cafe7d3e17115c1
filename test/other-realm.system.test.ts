import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "./support/source-graph.js";

// Jest runs every test in a realm (a context of node:vm) of its own, and so do some pools of Vitest.
it("a test of a user may run in a realm of its own", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-realm-"));
  const vitest = path.join(root, "node_modules/vitest/vitest.mjs");
  const env = {
    PATH: process.env["PATH"],
    HOME: dataDir,
    TINKER_TS_DATA_DIR: dataDir,
    TINKER_MODEL: path.join(root, "packages/engine/test/fixtures/qwen3/model"),
  };
  try {
    const folder = path.join(root, "test/realm");
    const args = [vitest, "run", "--root", folder, "--no-color"];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    expect(stdout).toMatch(/Tests +1 passed/);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}, 90_000);
