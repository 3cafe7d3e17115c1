import { expect, it } from "vitest";
import { readDate } from "./read-date.js";

it.each([
  ["2026-01-31", "2026-01-31T00:00:00.000Z"],
  ["2026-01-31T10:30", "2026-01-31T10:30:00.000Z"],
  ["2026-01-31 10:30:05", "2026-01-31T10:30:05.000Z"],
  ["2026-01-31T10:30:05.250Z", "2026-01-31T10:30:05.250Z"],
  ["2026-01-31T10:30:05+02:00", "2026-01-31T08:30:05.000Z"],
])("%s is %s", (text, iso) => {
  expect(readDate("--before", text).toISOString()).toBe(iso);
});

it.each(["", "soon", "2026-1-31", "2026-02-30", "2026-13-01", "2026-01-31T25:00", "31.01.2026"])(
  "%j is not a date",
  (text) => {
    expect(() => readDate("--before", text)).toThrow("Invalid date for --before");
  },
);
