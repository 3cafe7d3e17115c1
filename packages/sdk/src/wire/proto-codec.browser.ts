import { guardWire } from "./guard-wire.js";
import { decodeForwardBackwardOutput } from "./proto/forward-backward-output.js";
import { encodeForwardBackwardRequestInSlices } from "./proto/forward-backward-request.js";
import { decodeSampleResponse } from "./proto/sample-response.js";
import type { WireInput } from "./wire-types.js";

/*
 * Takes the place of proto-codec.ts in bundles for browsers: a client writes one message and reads two.
 */

const decoders: Readonly<Record<string, (bytes: Uint8Array) => unknown>> = {
  SampleResponse: decodeSampleResponse,
  ForwardBackwardOutput: decodeForwardBackwardOutput,
};

/** Whether a wire type has a binary form. */
export function hasProto(typeName: string): boolean {
  return Object.hasOwn(decoders, typeName);
}

/** Writes a training request, with a `pause` for other work between slices. */
export async function encodeForwardBackwardInSlices(
  value: WireInput<"ForwardBackwardRequest">,
  pause: () => Promise<void>,
): Promise<Uint8Array<ArrayBuffer>> {
  const typeName = "ForwardBackwardRequest";
  return guardWire(typeName, "encode", () => encodeForwardBackwardRequestInSlices(value, pause));
}

/** Reads a wire type from a protobuf message. */
export function decodeProto(typeName: string, bytes: Uint8Array): unknown {
  return guardWire(typeName, "decode", () => decoders[typeName]!(bytes));
}
