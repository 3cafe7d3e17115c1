import { toWireError } from "../errors/wire-error.js";
import { decodeForwardBackwardOutput } from "./proto/forward-backward-output.js";
import { encodeForwardBackwardRequestInSlices } from "./proto/forward-backward-request.js";
import { decodeSampleResponse } from "./proto/sample-response.js";
import type { WireInput, WireTypeName, WireValue } from "./wire-types.js";

/** Clients write one message and read two; servers use proto-codec.ts, which has both directions. */
const decoders: Readonly<Record<string, (bytes: Uint8Array) => unknown>> = {
  SampleResponse: decodeSampleResponse,
  ForwardBackwardOutput: decodeForwardBackwardOutput,
};

/** True for a result that has a binary form. */
export function hasProto(typeName: string): boolean {
  return Object.hasOwn(decoders, typeName);
}

/** Writes a training request, with a `pause` for other work between slices. */
export async function encodeForwardBackwardInSlices(
  value: WireInput<"ForwardBackwardRequest">,
  pause: () => Promise<void>,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return await encodeForwardBackwardRequestInSlices(value, pause);
  } catch (error) {
    throw toWireError(error, "ForwardBackwardRequest", "encode");
  }
}

/** Reads a result from a protobuf message; arrays may be views on `bytes`, so do not reuse it. */
export function decodeProto<N extends WireTypeName>(typeName: N, bytes: Uint8Array): WireValue<N> {
  try {
    return decoders[typeName]!(bytes) as WireValue<N>;
  } catch (error) {
    throw toWireError(error, typeName, "decode");
  }
}
