import { WireError, type WireDirection } from "../errors/wire-error.js";
import { guardWire } from "./guard-wire.js";
import {
  decodeForwardBackwardOutput,
  encodeForwardBackwardOutput,
} from "./proto/forward-backward-output.js";
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
  encodeForwardBackwardRequestInSlices,
} from "./proto/forward-backward-request.js";
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
  return guardWire(typeName, "encode", () => codec.encode(value as never));
}

/** Like `encodeProto` for training requests, with a `pause` for other work between slices. */
export async function encodeForwardBackwardInSlices(
  value: WireInput<"ForwardBackwardRequest">,
  pause: () => Promise<void>,
): Promise<Uint8Array<ArrayBuffer>> {
  const typeName = "ForwardBackwardRequest";
  return guardWire(typeName, "encode", () => encodeForwardBackwardRequestInSlices(value, pause));
}

/** Reads a wire type from a protobuf message; arrays may be views on `bytes`, so do not reuse it. */
export function decodeProto<N extends ProtoTypeName>(typeName: N, bytes: Uint8Array): WireValue<N> {
  const codec = protoCodecOf(typeName, "decode");
  return guardWire(typeName, "decode", () => codec.decode(bytes) as WireValue<N>);
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
