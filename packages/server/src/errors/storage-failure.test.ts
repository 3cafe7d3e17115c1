import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { isMissing, isStorageFailure } from "./storage-failure.js";

describe.each([
  { realm: "this", make: (code: string): unknown => Object.assign(new Error("no"), { code }) },
  {
    realm: "another",
    make: (code: string): unknown =>
      runInNewContext(`Object.assign(new Error("no"), { code: "${code}" })`),
  },
])("an error of $realm realm", ({ make }) => {
  it("is known by its code", () => {
    expect(isMissing(make("ENOENT"))).toBe(true);
    expect(isStorageFailure(make("ENOSPC"))).toBe(true);
    expect(isStorageFailure(make("SQLITE_FULL"))).toBe(true);
    expect(isMissing(make("EACCES"))).toBe(false);
    expect(isStorageFailure(make("ENOENT"))).toBe(false);
  });
});

it.each([undefined, null, "ENOENT", { code: 7 }, new Error("no")])("%o is neither", (error) => {
  expect(isMissing(error)).toBe(false);
  expect(isStorageFailure(error)).toBe(false);
});
