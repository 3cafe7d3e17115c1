import { ArgumentError } from "../errors/argument-error.js";

/** How many values a tensor of this shape holds; throws on sizes that are not counts. */
export function elementCount(shape: readonly number[], field: string): number {
  let count = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new ArgumentError(field, `a dimension must be a whole number, got ${size}`);
    }
    count *= size;
  }
  if (!Number.isSafeInteger(count)) {
    throw new ArgumentError(field, `[${shape.join(", ")}] is too large`);
  }
  return count;
}

/** The shape of nested lists; throws when rows differ in length or depth. */
export function nestedShape(list: unknown, field: string): number[] {
  if (!Array.isArray(list)) return [];
  const depth = list.filter(Array.isArray).length;
  if (depth === 0) return [list.length];
  const inner = nestedShape(list[0], field);
  const isSame = (other: readonly number[]): boolean =>
    other.length === inner.length && other.every((size, axis) => size === inner[axis]);
  if (depth !== list.length || !list.every((row) => isSame(nestedShape(row, field)))) {
    throw new ArgumentError(
      field,
      "the list is ragged: all rows must have the same length and depth",
    );
  }
  return [list.length, ...inner];
}

/** The values of nested lists in row-major order; a lone value is a list of one. */
export function flatten(value: unknown): unknown[] {
  if (!Array.isArray(value)) return [value];
  if (!value.some(Array.isArray)) return value;
  const flat: unknown[] = [];
  for (const item of value) for (const inner of flatten(item)) flat.push(inner);
  return flat;
}

/** Nested lists of a flat list; a shape of one dimension gives the list itself. */
export function nest<T>(flat: readonly T[], shape: readonly number[]): NestedList<T> | T {
  if (shape.length === 0) return flat[0]!;
  if (shape.length === 1) return [...flat];
  const [rows = 0, ...rest] = shape;
  const rowSize = elementCount(rest, "shape");
  return Array.from({ length: rows }, (_, row) =>
    nest(flat.slice(row * rowSize, (row + 1) * rowSize), rest),
  );
}

/** Lists of lists of any depth. */
export type NestedList<T> = (T | NestedList<T>)[];
