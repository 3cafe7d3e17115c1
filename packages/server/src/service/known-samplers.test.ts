import { expect, it } from "vitest";
import { SamplersTable } from "../store/samplers-table.js";
import { migrate } from "../store/schema.js";
import { SqlDatabase } from "../store/sql.js";
import { KnownSamplers } from "./known-samplers.js";

it("takes numbers beyond all others of their session for new ones, whatever their size", () => {
  const database = new SqlDatabase(":memory:");
  migrate(database);
  const table = new SamplersTable(database);
  for (const samplerId of ["a", "b"]) {
    const facts = { sessionId: "s", owner: "me", baseModel: "toy", modelPath: null, createdAt: 0 };
    table.insert({ samplerId, ...facts });
  }
  const samplers = new KnownSamplers(table);
  expect(samplers.isNext("a", 0)).toBe(false);
  samplers.get("a");
  samplers.get("b");
  const largest = 2n ** 60n;
  const numbers = [0, 0, 3, 1, 3, 4, largest, largest, largest + 1n, 5];
  const isNew = [true, false, true, false, false, true, true, false, true, false];
  expect(numbers.map((seq) => samplers.isNext("a", seq))).toEqual(isNew);
  expect(samplers.isNext("b", 0)).toBe(true);
  database.close();
});
