import { expect, it } from "vitest";
import { SqlDatabase, type SqlValue } from "./sql.js";

it("gives back what was stored, in one class each", () => {
  const database = new SqlDatabase(":memory:");
  database.exec("CREATE TABLE t (a)");
  const values: SqlValue[] = ["text", "", 1, -0.5, null, new Uint8Array([1, 2]), new Uint8Array(0)];
  for (const value of values) database.sql("INSERT INTO t VALUES (?)").run(value);
  const rows = database.sql("SELECT a FROM t").all();
  expect(rows.map(({ a }) => (a instanceof Uint8Array ? [...a] : a))).toEqual([
    "text",
    "",
    1,
    -0.5,
    null,
    [1, 2],
    [],
  ]);
  const first = database.sql("SELECT a FROM t WHERE a = 'text'").first();
  expect(first).toEqual({ a: "text" });
  database.close();
});

it.each([true, {}, [], Number.NaN, undefined, "a\0b"])(
  "refuses %j, which the library would crash on or cut",
  (value) => {
    const database = new SqlDatabase(":memory:");
    database.exec("CREATE TABLE t (a)");
    expect(() => database.sql("INSERT INTO t VALUES (?)").run(value as SqlValue)).toThrow(
      /cannot be stored|NUL/,
    );
    database.close();
  },
);
