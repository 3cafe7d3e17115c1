import { expect, it } from "vitest";
import { formatDate, formatRelative, formatSize } from "./formats.js";

it.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KB"],
  [1536, "1.5 KB"],
  [5 * 1024 ** 3, "5.0 GB"],
  [1024 ** 6, "1.0 EB"],
  [-1, "N/A"],
  [null, "N/A"],
])("%s bytes are %s", (bytes, text) => {
  expect(formatSize(bytes)).toBe(text);
});

const now = new Date("2026-06-15T12:00:00Z");
const minute = 60;
const hour = 3600;
const day = 86_400;

it.each([
  [0, "just now"],
  [60, "just now"],
  [61, "1 minute ago"],
  [59 * minute, "59 minutes ago"],
  [hour, "60 minutes ago"],
  [hour + 1, "1 hour ago"],
  [day - 1, "23 hours ago"],
  [day, "1 day ago"],
  [7 * day, "7 days ago"],
  [8 * day, "1 week ago"],
  [30 * day, "4 weeks ago"],
  [31 * day, "2026-05-15"],
  [-30, "in less than a minute"],
  [-2 * hour - 1, "in 2 hours"],
  [-3 * day, "in 3 days"],
])("%i seconds before are '%s'", (seconds, text) => {
  expect(formatRelative(new Date(now.getTime() - seconds * 1000), now)).toBe(text);
});

it("no moment is N/A", () => {
  expect(formatRelative(null)).toBe("N/A");
});

it("dates keep their microseconds and are in UTC", () => {
  expect(formatDate(new Date("2026-01-02T03:04:05Z"))).toBe("2026-01-02 03:04:05+00:00");
  expect(formatDate(new Date("2026-01-02T03:04:05.600Z"))).toBe("2026-01-02 03:04:05.600000+00:00");
});
