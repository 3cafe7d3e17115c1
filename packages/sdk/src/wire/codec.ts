import { WireError, type WireDirection } from "../errors/wire-error.js";
import { decodeWith } from "../schema/decode.js";
import { encodeWith } from "../schema/encode.js";
import type { Schema } from "../schema/schema.js";
import { parseJson } from "./json-text.js";
import {
  decodeForwardBackwardOutput,
  encodeForwardBackwardOutput,
} from "./proto/forward-backward-output.js";
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
} from "./proto/forward-backward-request.js";
import { decodeSampleResponse, encodeSampleResponse } from "./proto/sample-response.js";
import { wireTypes, type WireInput, type WireTypeName, type WireValue } from "./wire-types.js";

/** Turns a value into the JSON value of its wire type: defaults included, null fields left out. */
export function encodeJson<N extends WireTypeName>(typeName: N, value: WireInput<N>): unknown {
  return encodeWith(schemaOf(typeName, "encode"), typeName, value);
}

/** Reads a wire type from JSON: a parsed value, or the text or UTF-8 bytes of an object. */
export function decodeJson<N extends WireTypeName>(typeName: N, json: unknown): WireValue<N> {
  const schema = schemaOf(typeName, "decode");
  const isText = json instanceof Uint8Array || (typeof json === "string" && isObjectLike(schema));
  const wire = isText ? parseText(typeName, json) : json;
  return decodeWith(schema, typeName, wire) as WireValue<N>;
}

const protoCodecs = {
  ForwardBackwardRequest: {
    encode: encodeForwardBackwardRequest,
    decode: decodeForwardBackwardRequest,
  },
  SampleResponse: { encode: encodeSampleResponse, decode: decodeSampleResponse },
  ForwardBackwardOutput: {
    encode: encodeForwardBackwardOutput,
    decode: decodeForwardBackwardOutput,
  },
};

/** The wire types that have a binary form. */
export type ProtoTypeName = keyof typeof protoCodecs;

/** Whether a wire type has a binary form. */
export function hasProto(typeName: string): typeName is ProtoTypeName {
  return Object.hasOwn(protoCodecs, typeName);
}

/** Turns a value into the protobuf message of its wire type. */
export function encodeProto<N extends ProtoTypeName>(
  typeName: N,
  value: WireInput<N>,
): Uint8Array<ArrayBuffer> {
  const codec = protoCodecOf(typeName, "encode");
  return guarded(typeName, "encode", () => codec.encode(value as never));
}

/** Reads a wire type from a protobuf message; arrays may be views on `bytes`, so do not reuse it. */
export function decodeProto<N extends ProtoTypeName>(typeName: N, bytes: Uint8Array): WireValue<N> {
  const codec = protoCodecOf(typeName, "decode");
  return guarded(typeName, "decode", () => codec.decode(bytes) as WireValue<N>);
}

function schemaOf(typeName: string, direction: WireDirection): Schema {
  if (Object.hasOwn(wireTypes, typeName)) return wireTypes[typeName as WireTypeName];
  throw new WireError(direction, typeName, "", "there is no wire type of this name");
}

function protoCodecOf(typeName: string, direction: WireDirection) {
  if (hasProto(typeName)) return protoCodecs[typeName];
  throw new WireError(
    direction,
    typeName,
    "",
    `has no binary form; ${Object.keys(protoCodecs).join(", ")} have one`,
  );
}

function isObjectLike(schema: Schema): boolean {
  const { kind } = schema.node;
  return kind !== "string" && kind !== "enum" && kind !== "literal";
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function parseText(typeName: string, json: Uint8Array | string): unknown {
  return guarded(typeName, "decode", () =>
    parseJson(typeof json === "string" ? json : decoder.decode(json)),
  );
}

function guarded<T>(typeName: string, direction: WireDirection, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof WireError) throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new WireError(direction, typeName, "", problem, { cause: error });
  }
}
