import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { TinkerError } from "tinker-ts/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { DataDirectoryInUseError, DataLock } from "./data-lock.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-lock-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

it("lets one process in at a time and says who is inside", () => {
  const lock = new DataLock(folder);
  lock.announce("http://127.0.0.1:8080");
  expect(() => new DataLock(folder)).toThrow(DataDirectoryInUseError);
  expect(() => new DataLock(folder)).toThrow(TinkerError);
  expect(() => new DataLock(folder)).toThrow(
    `process ${process.pid}: use it at http://127.0.0.1:8080`,
  );
  lock.release();
  new DataLock(folder).release();
});

it("is free again after its process was killed", () => {
  const module = path.join(import.meta.dirname, "../../dist/store/data-lock.js");
  const code = `
    const { DataLock } = await import(${JSON.stringify(module)});
    new DataLock(${JSON.stringify(folder)});
    process.kill(process.pid, "SIGKILL");`;
  expect(() =>
    execFileSync(process.execPath, ["--input-type=module", "--eval", code], { stdio: "ignore" }),
  ).toThrow();
  new DataLock(folder).release();
});
