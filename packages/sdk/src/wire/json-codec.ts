import { toWireError, WireError, type WireDirection } from "../errors/wire-error.js";
import type { DecodeOptions } from "../schema/cursor.js";
import { decodeWith } from "../schema/decode.js";
import { encodeWith } from "../schema/encode.js";
import { ownArray } from "../schema/typed-lists.js";
import type { Schema } from "../schema/schema.js";
import { parseJson } from "./json-text.js";
import { wireTypes, type WireInput, type WireTypeName, type WireValue } from "./wire-types.js";

/** Turns a value into the JSON value of its wire type: defaults included, null fields left out. */
export function encodeJson<N extends WireTypeName>(typeName: N, value: WireInput<N>): unknown {
  return encodeWith(schemaOf(typeName, "encode"), typeName, value);
}

/**
 * Reads a wire type from JSON: a parsed value, or the text or UTF-8 bytes of an object. Unknown fields of
 * requests are refused, so that a typo is found; a server ignores them, because newer clients send more.
 */
export function decodeJson<N extends WireTypeName>(
  typeName: N,
  given: unknown,
  options: DecodeOptions = {},
): WireValue<N> {
  const json = ownArray(given);
  const schema = schemaOf(typeName, "decode");
  const isText = json instanceof Uint8Array || (typeof json === "string" && isObjectLike(schema));
  const wire = isText ? parseText(typeName, json) : json;
  return decodeWith(schema, typeName, wire, options) as WireValue<N>;
}

function schemaOf(typeName: string, direction: WireDirection): Schema {
  if (Object.hasOwn(wireTypes, typeName)) return wireTypes[typeName as WireTypeName];
  throw new WireError(direction, typeName, "", "there is no wire type of this name");
}

function isObjectLike(schema: Schema): boolean {
  const { kind } = schema.node;
  return kind !== "string" && kind !== "enum" && kind !== "literal";
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Parses a JSON body. */
export function parseText(typeName: string, json: Uint8Array | string): unknown {
  try {
    return parseJson(typeof json === "string" ? json : decoder.decode(json));
  } catch (error) {
    throw toWireError(error, typeName, "decode");
  }
}
