import type { Cursor } from "./cursor.js";
import type { UnionNode } from "./node.js";

/** Complains about a value that is none of the options, naming the field that tells them apart. */
export function failUnion(
  node: UnionNode,
  value: unknown,
  cursor: Cursor,
  tag: string | undefined,
): never {
  const wanted = `one of ${Object.keys(node.options).join(", ")}`;
  if (tag === undefined || typeof value !== "object" || value === null || Array.isArray(value)) {
    return cursor.expected(tag === undefined ? wanted : `an object (${node.name})`, value);
  }
  const given = (value as Readonly<Record<string, unknown>>)[tag];
  return cursor.within(tag, () => cursor.expected(wanted, given));
}
