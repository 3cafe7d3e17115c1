import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { openDatabase } from "./store.js";

it.each([
  [true, "FULL", 2],
  [false, "NORMAL", 1],
])("syncs commits (%s) as SQLite's %s does, with a write-ahead log", (isSynced, _, level) => {
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-store-"));
  const database = openDatabase(path.join(folder, "test.db"), isSynced);
  expect(database.sql("PRAGMA synchronous").first()).toEqual({ synchronous: level });
  expect(database.sql("PRAGMA journal_mode").first()).toEqual({ journal_mode: "wal" });
  database.close();
  rmSync(folder, { recursive: true });
});
