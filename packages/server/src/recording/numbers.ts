import type { Plain } from "../store/points-table.js";

const words = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

/** A number as JSON can say it. */
export function toPlain(value: number): Plain {
  return Number.isFinite(value) ? value : (String(value) as Plain);
}

/** A number, or the word for one; undefined for anything else. */
export function toNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : words.get(value);
}
