import { expect, it } from "vitest";
import { Timestamp } from "./timestamp.js";

it.each([
  ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"],
  ["2026-01-02T03:04:05.678901+05:30", "2026-01-01T21:34:05.678Z"],
  ["2026-01-02 03:04:05", "2026-01-02T03:04:05.000Z"],
  ["2026-01-02T03:04:05-0800", "2026-01-02T11:04:05.000Z"],
  ["2026-01-02", "2026-01-02T00:00:00.000Z"],
])("reads %s and keeps its text", (text, iso) => {
  const moment = new Timestamp(text);
  expect(moment.toISOString()).toBe(iso);
  expect(moment.text).toBe(text);
  expect(JSON.stringify(moment)).toBe(JSON.stringify(text));
});

it("writes microseconds only if they are not zero", () => {
  expect(new Timestamp(new Date(1000)).text).toBe("1970-01-01T00:00:01Z");
  expect(new Timestamp(1001).text).toBe("1970-01-01T00:00:01.001000Z");
});

it("forgets the text when the date is changed", () => {
  const moment = new Timestamp("2026-01-02T03:04:05.678901Z");
  moment.setUTCFullYear(2027);
  expect(moment.text).toBe("2027-01-02T03:04:05.678000Z");
});

it("keeps the text of a copied timestamp", () => {
  expect(new Timestamp(new Timestamp("2026-01-02")).text).toBe("2026-01-02");
});

it.each([
  "",
  "2026",
  "2026-13-01",
  "2026-02-30",
  "2026-01-02T25:00:00Z",
  "yesterday",
  "0000-00-00",
])("refuses %j", (text) => {
  expect(new Timestamp(text).getTime()).toBeNaN();
});
