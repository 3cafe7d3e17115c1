import { toBase64 } from "./base64.js";
import { Cursor, failUnion } from "./cursor.js";
import { checkJson } from "./free-json.js";
import type { FieldNode, Node, ObjectNode } from "./node.js";
import { ownArray, toFloat64Array, toInt32Array, toIntegerArray } from "./typed-lists.js";
import { readInteger, readNumber, writeMeasured } from "./scalars.js";
import type { Schema } from "./schema.js";
import { setOwn } from "./set-own.js";
import { Timestamp } from "./timestamp.js";

/** Turns a value into a JSON value (defaults included, null fields left out); throws `WireError`. */
export function encodeWith<V, I>(schema: Schema<V, I>, typeName: string, value: V | I): unknown {
  return encodeNode(schema.node, value, new Cursor("encode", typeName));
}

function encodeNode(node: Node, value: unknown, cursor: Cursor): unknown {
  switch (node.kind) {
    case "string":
      return typeof value === "string" ? value : cursor.expected("text", value);
    case "boolean":
      return typeof value === "boolean" ? value : cursor.expected("true or false", value);
    case "number":
      if (typeof value !== "number") return cursor.expected("a number", value);
      return cursor.isMeasured ? writeMeasured(value) : readNumber(value, cursor);
    case "integer":
      return typeof value === "number" || typeof value === "bigint"
        ? readInteger(value, node.allowBig, cursor)
        : cursor.expected("an integer", value);
    case "literal":
      return value === node.value ? value : cursor.expected(JSON.stringify(node.value), value);
    case "enum":
      return typeof value === "string" && (node.isOpen || node.values.includes(value))
        ? value
        : cursor.expected(node.values.join(" or "), value);
    case "timestamp":
      return encodeTimestamp(value, cursor);
    case "bytes":
      return encodeBytes(ownArray(value), cursor);
    case "json":
      return checkJson(value, cursor);
    case "tokens":
      return toList(toInt32Array(value, cursor));
    case "floats":
      return encodeFloats(toFloat64Array(value, cursor), cursor);
    case "integers":
      return encodeIntegers(toIntegerArray(value, cursor));
    case "nullable":
      return value === null ? null : encodeNode(node.item, value, cursor);
    case "array":
      if (!Array.isArray(value)) return cursor.expected("a list", value);
      return value.map((item, index) =>
        cursor.within(index, () => encodeNode(node.item, item, cursor)),
      );
    case "tuple":
      if (!Array.isArray(value) || value.length !== node.items.length) {
        return cursor.expected(`a list of ${node.items.length}`, value);
      }
      return node.items.map((item, index) =>
        cursor.within(index, () => encodeNode(item, value[index], cursor)),
      );
    case "record":
      return encodeRecord(node.item, value, cursor);
    case "measured":
      return cursor.measured(() => encodeNode(node.item, value, cursor));
    case "object":
      return encodeObject(node, value, cursor);
    case "union": {
      const key = node.choose(value);
      const option = key === undefined ? undefined : node.options[key];
      if (!option) return failUnion(node, value, cursor, node.tag);
      return encodeNode(option, value, cursor);
    }
    case "mapped":
      return encodeNode(node.inner, unwrapMapped(node.unwrap, value, cursor), cursor);
  }
}

function encodeObject(node: ObjectNode, value: unknown, cursor: Cursor): Record<string, unknown> {
  const source = asObject(value, node.name, cursor);
  const wire: Record<string, unknown> = {};
  for (const field of node.fieldList) {
    const given = source[field.name];
    const raw = given === undefined && field.presence === "default" ? field.default : given;
    const isMissing = raw === undefined || (raw === null && field.node.kind !== "nullable");
    if (field.protobufOnly) {
      if (raw !== field.default) {
        cursor.within(field.wireName, () =>
          cursor.fail(`only ${String(field.default)} fits into JSON`),
        );
      }
    } else if (!isMissing) {
      cursor.enter(field.wireName);
      wire[field.wireName] = encodeNode(field.node, raw, cursor);
      cursor.leave();
    } else if (isNeeded(node, field, source)) {
      cursor.within(field.wireName, () =>
        cursor.fail(`this field is required but is ${raw === null ? "null" : "missing"}`),
      );
    }
  }
  // Walks the object itself: a list of its keys would be made for every object of every request.
  for (const key in source) {
    if (node.fields.has(key) || source[key] === undefined || !Object.hasOwn(source, key)) continue;
    if (key === "unknownFields" && !node.strict) appendUnknown(node, source[key], wire, cursor);
    else
      cursor.within(key, () => cursor.fail(`unknown field; ${node.name} has ${listNames(node)}`));
  }
  return wire;
}

function isNeeded(
  node: ObjectNode,
  { presence, requiredUnless }: FieldNode,
  source: Readonly<Record<string, unknown>>,
): boolean {
  if (presence !== "optional") return true;
  const other = requiredUnless === undefined ? undefined : node.byWireName.get(requiredUnless);
  return other !== undefined && (source[other.name] ?? null) === null;
}

function appendUnknown(
  node: ObjectNode,
  unknownFields: unknown,
  wire: Record<string, unknown>,
  cursor: Cursor,
): void {
  const source = asObject(unknownFields, "unknownFields", cursor);
  for (const key of Object.keys(source)) {
    cursor.within(key, () => {
      if (node.byWireName.has(key)) cursor.fail("is a known field, so not one of unknownFields");
      setOwn(wire, key, checkJson(source[key], cursor));
    });
  }
}

function encodeRecord(item: Node, value: unknown, cursor: Cursor): Record<string, unknown> {
  const source = asObject(value, "map", cursor);
  const wire: Record<string, unknown> = {};
  for (const key of Object.keys(source)) {
    if (source[key] === undefined) continue;
    setOwn(
      wire,
      key,
      cursor.within(key, () => encodeNode(item, source[key], cursor)),
    );
  }
  return wire;
}

function encodeTimestamp(value: unknown, cursor: Cursor): string {
  if (!(value instanceof Date) && typeof value !== "string") {
    return cursor.expected("a Date or ISO 8601 text", value);
  }
  const moment = value instanceof Timestamp ? value : new Timestamp(value);
  if (Number.isNaN(moment.getTime()))
    return cursor.fail(`not a valid date and time: ${String(value)}`);
  return moment.text;
}

function encodeFloats(list: Float64Array, cursor: Cursor): (number | string)[] {
  const bad = list.findIndex((item) => !Number.isFinite(item));
  if (bad >= 0 && cursor.isMeasured) return toList(list).map(writeMeasured);
  if (bad >= 0) return cursor.within(bad, () => cursor.fail(`${list[bad]} is not allowed in JSON`));
  return toList(list);
}

function encodeBytes(value: unknown, cursor: Cursor): unknown {
  return value instanceof Uint8Array
    ? toBase64(value)
    : cursor.expected("bytes (a Uint8Array)", value);
}

/** `Array.from` walks an iterator, which allocates an object per number. */
function toList(numbers: Int32Array | Float64Array): number[] {
  const list: number[] = [];
  for (let index = 0; index < numbers.length; index++) list.push(numbers[index]!);
  return list;
}

function encodeIntegers(list: Int32Array | BigInt64Array): (number | bigint)[] {
  if (list instanceof Int32Array) return toList(list);
  return Array.from(list, (item) => (Number.isSafeInteger(Number(item)) ? Number(item) : item));
}

function unwrapMapped(unwrap: (value: never) => unknown, value: unknown, cursor: Cursor): unknown {
  try {
    return unwrap(value as never);
  } catch (error) {
    return cursor.fail(error instanceof Error ? error.message : String(error), error);
  }
}

function asObject(value: unknown, name: string, cursor: Cursor): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return cursor.expected(`an object (${name})`, value);
  }
  return value as Readonly<Record<string, unknown>>;
}

function listNames(node: ObjectNode): string {
  return [...node.fields.keys()].join(", ");
}
