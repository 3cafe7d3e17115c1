import type { Cursor } from "./cursor.js";
import { setOwn } from "./set-own.js";

/** Deepest nesting accepted in free-form JSON; deeper input would exhaust the stack of a serializer. */
const maxDepth = 200;

/** Checks that a free-form value is JSON (bigints allowed, NaN and functions not) and copies it. */
export function checkJson(value: unknown, cursor: Cursor): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "bigint") return value;
  if (typeof value === "number") {
    return Number.isFinite(value) ? value : cursor.fail(`${value} is not allowed in JSON`);
  }
  if (cursor.depth > maxDepth) return cursor.fail(`nested deeper than ${maxDepth} levels`);
  if (Array.isArray(value)) {
    return value.map((item, index) => cursor.within(index, () => checkJson(item, cursor)));
  }
  if (typeof value === "object" && isPlain(value)) {
    const copy: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      setOwn(
        copy,
        key,
        cursor.within(key, () => checkJson(item, cursor)),
      );
    }
    return copy;
  }
  return cursor.expected("JSON", value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
