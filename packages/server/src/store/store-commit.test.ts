import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { GroupCommit } from "./store.js";
import { SqlDatabase } from "./sql.js";

let folder: string;
let database: SqlDatabase;
/** Another connection, which sees what is committed and nothing else. */
let reader: SqlDatabase;
let commits: GroupCommit;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-commit-"));
  const file = path.join(folder, "test.db");
  database = new SqlDatabase(file);
  database.sql("PRAGMA journal_mode = WAL").all();
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("CREATE TABLE items (name TEXT PRIMARY KEY)");
  // A part without its item is found out when it is committed, and not before.
  database.exec(
    "CREATE TABLE parts (item TEXT REFERENCES items (name) DEFERRABLE INITIALLY DEFERRED)",
  );
  reader = new SqlDatabase(file);
  commits = new GroupCommit(database);
});

afterEach(() => {
  reader.close();
  database.close();
  rmSync(folder, { recursive: true, force: true });
});

const insert = (name: string): number =>
  database.sql("INSERT INTO items (name) VALUES (?)").run(name);
const names = (): unknown[] =>
  reader
    .sql("SELECT name FROM items ORDER BY name")
    .all()
    .map((row) => row["name"]);

/** Transactions in the write-ahead log: frames that say how large the database is after them. */
function committed(): number {
  const log = readFileSync(path.join(folder, "test.db-wal"));
  const frameBytes = 24 + log.readUInt32BE(8);
  let count = 0;
  for (let frame = 32; frame < log.length; frame += frameBytes) {
    if (log.readUInt32BE(frame + 4) !== 0) count++;
  }
  return count;
}

it("shares one transaction between the writes of one turn", async () => {
  const before = committed();
  await Promise.all(Array.from({ length: 100 }, (_, i) => commits.write(() => insert(`n${i}`))));
  expect(names()).toHaveLength(100);
  const begun = committed() - before;
  expect(begun).toBeGreaterThan(0);
  expect(begun).toBeLessThanOrEqual(20);
});

it("does nothing before its turn comes and has committed when it resolves", async () => {
  const written = commits.write(() => insert("a"));
  expect(names()).toEqual([]);
  await written;
  expect(names()).toEqual(["a"]);
});

it("undoes an action that throws and keeps its neighbours", async () => {
  const results = await Promise.allSettled([
    commits.write(() => insert("a")),
    commits.write(() => {
      insert("b");
      throw new Error("changed my mind");
    }),
    commits.write(() => insert("c")),
    commits.write(() => insert("a")),
  ]);
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "rejected",
  ]);
  expect(names()).toEqual(["a", "c"]);
});

it("undoes an action that throws by itself, and goes on with the next", async () => {
  const lone = commits.write(() => {
    insert("a");
    throw new Error("changed my mind");
  });
  await expect(lone).rejects.toThrow("changed my mind");
  await commits.write(() => insert("b"));
  expect(names()).toEqual(["b"]);
});

it("rejects everything of a transaction when its commit fails, and continues with the next", async () => {
  const results = await Promise.allSettled([
    commits.write(() => insert("a")),
    commits.write(() => database.sql("INSERT INTO parts (item) VALUES (?)").run("missing")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await commits.write(() => insert("c"));
  expect(names()).toEqual(["c"]);
});
