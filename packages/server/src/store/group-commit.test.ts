import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { GroupCommit } from "./group-commit.js";
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

it.each(["alone", "among others"])(
  "runs something else in the place of an action that throws, %s",
  async (company) => {
    const before = company === "alone" ? null : commits.write(() => insert("first"));
    const replaced = commits.write(
      () => {
        insert("half");
        throw new Error("changed my mind");
      },
      0,
      (error) => insert(`whole: ${(error as Error).message}`),
    );
    const behind = before && commits.write(() => insert("half"));
    const hopeless =
      before &&
      commits.write(
        () => insert("first"),
        0,
        () => insert("first"),
      );
    expect(await replaced).toBe(1);
    await behind;
    await expect(hopeless ?? Promise.reject(new Error("UNIQUE"))).rejects.toThrow("UNIQUE");
    const own = "whole: changed my mind";
    expect(names()).toEqual(before ? ["first", "half", own] : [own]);
  },
);

it("undoes an action that throws by itself, and goes on with the next", async () => {
  const lone = commits.write(() => {
    insert("a");
    throw new Error("changed my mind");
  });
  await expect(lone).rejects.toThrow("changed my mind");
  await commits.write(() => insert("b"));
  expect(names()).toEqual(["b"]);
});

it("rejects everything of a transaction whose commit fails, and goes on with the next", async () => {
  const results = await Promise.allSettled([
    commits.write(() => insert("a")),
    commits.write(() => database.sql("INSERT INTO parts (item) VALUES (?)").run("missing")),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await commits.write(() => insert("c"));
  expect(names()).toEqual(["c"]);
});

it("lets a write wait that has time, and takes it into the transaction of one that has none", async () => {
  const before = committed();
  const order: string[] = [];
  const patient = commits.write(() => insert("patient"), 1).then(() => order.push("patient"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(names()).toEqual([]);
  await commits.write(() => insert("urgent")).then(() => order.push("urgent"));
  await patient;
  expect(names()).toEqual(["patient", "urgent"]);
  expect(order).toEqual(["patient", "urgent"]);
  expect(committed() - before).toBe(1);
});

it("has no transaction of its own for a write that has time behind one that has none", async () => {
  const before = committed();
  const urgent = commits.write(() => insert("urgent"));
  const patient = commits.write(() => insert("patient"), 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(names()).toEqual(["patient", "urgent"]);
  await Promise.all([urgent, patient]);
  expect(committed() - before).toBe(1);
});

it("commits a write that has time by itself when nothing else comes", async () => {
  await commits.write(() => insert("patient"), 1);
  expect(names()).toEqual(["patient"]);
  await commits.write(() => insert("next"), 1);
  expect(names()).toEqual(["next", "patient"]);
});

it("commits what has much time together with what has little, whichever came first", async () => {
  const before = committed();
  const hour = 3_600_000;
  const first = commits.write(() => insert("much"), hour);
  const little = commits.write(() => insert("little"), 1);
  const last = commits.write(() => insert("much more"), 2 * hour);
  await Promise.all([first, little, last]);
  expect(names()).toEqual(["little", "much", "much more"]);
  expect(committed() - before).toBe(1);
});

it("commits a write that has time in the same turn when somebody waits for it", async () => {
  commits.hurry();
  const written = commits.write(() => insert("patient"), 1);
  commits.hurry();
  await new Promise((resolve) => setImmediate(resolve));
  expect(names()).toEqual(["patient"]);
  await written;
});
