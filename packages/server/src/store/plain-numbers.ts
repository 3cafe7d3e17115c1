/** A number, or the word for one that JSON and a column cannot hold. */
export type Plain = number | "NaN" | "Infinity" | "-Infinity";

const words = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

/** A number in a form that JSON and columns can hold. */
export function toPlain(value: number): Plain {
  return Number.isFinite(value) ? value : (String(value) as Plain);
}

/** The number of a number or of the word for one; undefined for anything else. */
export function toNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : words.get(value);
}
