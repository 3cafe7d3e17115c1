import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { GroupCommit } from "./group-commit.js";
import { SqlDatabase } from "./sql.js";

let folder: string;
let database: SqlDatabase;
let commits: GroupCommit;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-commit-"));
  database = new SqlDatabase(path.join(folder, "test.db"));
  database.exec("CREATE TABLE items (name TEXT PRIMARY KEY)");
  commits = new GroupCommit(database);
});

afterEach(() => {
  database.close();
  rmSync(folder, { recursive: true, force: true });
});

const insert = (name: string): number =>
  database.sql("INSERT INTO items (name) VALUES (?)").run(name);
const names = (): unknown[] =>
  database
    .sql("SELECT name FROM items ORDER BY name")
    .all()
    .map((row) => row["name"]);

it("shares one transaction between the writes of one turn", async () => {
  let begun = 0;
  const exec = database.exec.bind(database);
  database.exec = (sql) => {
    if (sql.startsWith("BEGIN")) begun++;
    exec(sql);
  };
  await Promise.all(Array.from({ length: 100 }, (_, i) => commits.write(() => insert(`n${i}`))));
  expect(names()).toHaveLength(100);
  expect(begun).toBeLessThanOrEqual(5);
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

it("rejects everything of a transaction whose commit fails, and goes on with the next", async () => {
  const exec = database.exec.bind(database);
  let isBroken = true;
  database.exec = (sql) => {
    if (sql === "COMMIT" && isBroken) throw new Error("disk full");
    exec(sql);
  };
  const results = await Promise.allSettled([
    commits.write(() => insert("a")),
    commits.write(() => insert("b")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  isBroken = false;
  await commits.write(() => insert("c"));
  expect(names()).toEqual(["c"]);
});
