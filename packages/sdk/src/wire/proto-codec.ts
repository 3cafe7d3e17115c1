import { toWireError, WireError, type WireDirection } from "../errors/wire-error.js";
import {
  decodeForwardBackwardOutput,
  encodeForwardBackwardOutput,
} from "./proto/forward-backward-output.js";
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
} from "./proto/forward-backward-request.js";
import type { OnUnknownField } from "./proto/message-reader.js";
import { decodeSampleResponse, encodeSampleResponse } from "./proto/sample-response.js";
import type { WireInput, WireValue } from "./wire-types.js";

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

/** True for a wire type with a binary form. */
export function hasProto(typeName: string): typeName is ProtoTypeName {
  return Object.hasOwn(protoCodecs, typeName);
}

/** Turns a value into the protobuf message of its wire type. */
export function encodeProto<N extends ProtoTypeName>(
  typeName: N,
  value: WireInput<N>,
): Uint8Array<ArrayBuffer> {
  const codec = protoCodecOf(typeName, "encode");
  try {
    return codec.encode(value as never);
  } catch (error) {
    throw toWireError(error, typeName, "encode");
  }
}

/**
 * Reads a wire type from a protobuf message; arrays may be views on `bytes`, so do not reuse it. Unknown fields
 * are skipped; `onUnknown` is called with the numbers of those of a request.
 */
export function decodeProto<N extends ProtoTypeName>(
  typeName: N,
  bytes: Uint8Array,
  onUnknown?: OnUnknownField,
): WireValue<N> {
  const codec = protoCodecOf(typeName, "decode");
  try {
    return codec.decode(bytes, onUnknown) as WireValue<N>;
  } catch (error) {
    throw toWireError(error, typeName, "decode");
  }
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
