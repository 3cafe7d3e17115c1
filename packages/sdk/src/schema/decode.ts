import { Cursor, type DecodeOptions, failUnion } from "./cursor.js";
import { checkJson } from "./free-json.js";
import type { EnumNode, FieldNode, Node, ObjectNode, UnionNode } from "./node.js";
import { readBase64, readBoolean, readInteger, readNumber } from "./scalars.js";
import type { Schema } from "./schema.js";
import { setOwn } from "./set-own.js";
import { Timestamp } from "./timestamp.js";
import { toFloat64Array, toInt32Array, toIntegerArray } from "./typed-lists.js";
import { wireNameOf } from "./wire-name.js";

/** Reads a parsed JSON value as the type of `schema`; throws `WireError` naming the field at fault. */
export function decodeWith<V, I>(
  schema: Schema<V, I>,
  typeName: string,
  wire: unknown,
  options: DecodeOptions = {},
): V {
  const cursor = new Cursor("decode", typeName, options);
  return decodeNode(schema.node, wire, cursor) as V;
}

function decodeNode(node: Node, wire: unknown, cursor: Cursor): unknown {
  switch (node.kind) {
    case "string":
      return typeof wire === "string" ? wire : cursor.expected("text", wire);
    case "boolean":
      return readBoolean(wire, cursor);
    case "number":
      return readNumber(wire, cursor);
    case "integer":
      return readInteger(wire, node.allowBig, cursor);
    case "literal":
      return wire === node.value ? wire : cursor.expected(JSON.stringify(node.value), wire);
    case "enum":
      return decodeEnum(node, wire, cursor);
    case "timestamp":
      return decodeTimestamp(wire, cursor);
    case "bytes":
      return readBase64(wire, cursor);
    case "json":
      return checkJson(wire, cursor);
    case "tokens":
      return toInt32Array(wire, cursor);
    case "floats":
      return toFloat64Array(wire, cursor);
    case "integers":
      return toIntegerArray(wire, cursor);
    case "nullable":
      return wire === null ? null : decodeNode(node.item, wire, cursor);
    case "array":
      if (!Array.isArray(wire)) return cursor.expected("a list", wire);
      return wire.map((item, index) =>
        cursor.within(index, () => decodeNode(node.item, item, cursor)),
      );
    case "tuple":
      if (!Array.isArray(wire) || wire.length !== node.items.length) {
        return cursor.expected(`a list of ${node.items.length}`, wire);
      }
      return node.items.map((item, index) =>
        cursor.within(index, () => decodeNode(item, wire[index], cursor)),
      );
    case "record":
      return decodeRecord(node.item, wire, cursor);
    case "measured":
      return cursor.measured(() => decodeNode(node.item, wire, cursor));
    case "object":
      return decodeObject(node, wire, cursor);
    case "union":
      return decodeUnion(node, wire, cursor);
    case "mapped":
      return wrapMapped(node.wrap, decodeNode(node.inner, wire, cursor), cursor);
  }
}

function decodeObject(node: ObjectNode, wire: unknown, cursor: Cursor): Record<string, unknown> {
  const source = asObject(wire, node.name, cursor);
  const value: Record<string, unknown> = {};
  for (const field of node.fieldList) {
    const isGiven = !field.protobufOnly && Object.hasOwn(source, field.wireName);
    const raw = isGiven ? source[field.wireName] : oldValue(field, source);
    const isMissing = raw === undefined || (raw === null && field.node.kind !== "nullable");
    if (!isMissing && field.node.kind === "literal" && !node.strict) {
      // What kind of answer this is was asked for; another name for it is no reason to refuse it.
      value[field.name] = field.node.value;
    } else if (!isMissing) {
      cursor.enter(field.wireName);
      value[field.name] = decodeNode(field.node, raw, cursor);
      cursor.leave();
    } else if (isNeeded(field, source, cursor)) {
      cursor.within(field.wireName, () =>
        cursor.fail(`this field is required but ${raw === null ? "null" : "missing"}`),
      );
    } else {
      value[field.name] = field.presence === "optional" ? null : structuredClone(field.default);
    }
  }
  collectUnknown(node, source, value, cursor);
  return value;
}

function isNeeded(
  { presence, isPromised, requiredUnless }: FieldNode,
  source: Readonly<Record<string, unknown>>,
  cursor: Cursor,
): boolean {
  if (presence === "required") return true;
  if (isPromised) return !cursor.options.isLenient;
  return requiredUnless !== undefined && (source[requiredUnless] ?? null) === null;
}

function oldValue({ oldWireName }: FieldNode, source: Readonly<Record<string, unknown>>): unknown {
  return oldWireName !== undefined && Object.hasOwn(source, oldWireName)
    ? source[oldWireName]
    : undefined;
}

function collectUnknown(
  node: ObjectNode,
  source: Readonly<Record<string, unknown>>,
  value: Record<string, unknown>,
  cursor: Cursor,
): void {
  let unknownFields: Record<string, unknown> | undefined;
  for (const key in source) {
    if (node.byWireName.has(key) || source[key] === undefined) continue;
    if (!Object.hasOwn(source, key)) continue;
    if (node.ignored.has(key)) continue;
    if (node.strict && cursor.options.unknown === "ignore") {
      cursor.ignore(key);
      continue;
    }
    cursor.within(key, () => {
      if (node.strict) cursor.fail(`unknown field; ${node.name} has ${listFields(node)}`);
      unknownFields ??= {};
      setOwn(unknownFields, key, checkJson(source[key], cursor));
    });
  }
  if (unknownFields) value["unknownFields"] = unknownFields;
}

function decodeRecord(item: Node, wire: unknown, cursor: Cursor): Record<string, unknown> {
  const source = asObject(wire, "map", cursor);
  const value: Record<string, unknown> = {};
  for (const key of Object.keys(source)) {
    setOwn(
      value,
      key,
      cursor.within(key, () => decodeNode(item, source[key], cursor)),
    );
  }
  return value;
}

function decodeEnum(node: EnumNode, wire: unknown, cursor: Cursor): string {
  if (typeof wire !== "string") return cursor.expected(node.values.join(" or "), wire);
  const text = node.ignoreCase ? wire.toLowerCase() : wire;
  if (node.values.includes(text)) return text;
  if (node.isOpen) return wire;
  return node.fallback ?? cursor.expected(node.values.join(" or "), wire);
}

function decodeTimestamp(wire: unknown, cursor: Cursor): Timestamp {
  const value =
    typeof wire === "string"
      ? new Timestamp(wire)
      : typeof wire === "number"
        ? new Timestamp(epochMs(wire))
        : undefined;
  if (value === undefined || Number.isNaN(value.getTime())) {
    return cursor.expected("an ISO 8601 date and time", wire);
  }
  return value;
}

// Epoch numbers are seconds up to the year 2603 and milliseconds beyond, as the reference reads them.
function epochMs(value: number): number {
  return Math.abs(value) <= 2e10 ? value * 1000 : value;
}

function decodeUnion(node: UnionNode, wire: unknown, cursor: Cursor): unknown {
  const key = node.chooseWire(wire);
  const option = key === undefined ? undefined : node.options[key];
  if (!option) return failUnion(node, wire, cursor, node.tag && wireNameOf(node.tag));
  return decodeNode(option, wire, cursor);
}

function wrapMapped(wrap: (inner: never) => unknown, inner: unknown, cursor: Cursor): unknown {
  try {
    return wrap(inner as never);
  } catch (error) {
    return cursor.fail(error instanceof Error ? error.message : String(error), error);
  }
}

function asObject(wire: unknown, name: string, cursor: Cursor): Readonly<Record<string, unknown>> {
  if (typeof wire !== "object" || wire === null || Array.isArray(wire)) {
    return cursor.expected(`an object (${name})`, wire);
  }
  return wire as Readonly<Record<string, unknown>>;
}

function listFields(node: ObjectNode): string {
  return [...node.byWireName.keys()].join(", ");
}
