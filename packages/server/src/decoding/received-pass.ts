import type { WireValue } from "tinker-ts/wire";
import { canonicalPass, identityOf, isInOrder } from "../queue/canonical-payload.js";

/** A forward or forward/backward request as it is accepted: where it belongs and what is kept of it. */
export interface ReceivedPass {
  readonly modelId: string;
  readonly seqId: number | null;
  readonly kind: "forward" | "forward_backward";
  /** The form in which it is kept. */
  readonly payload: Uint8Array;
  /** What a retry has in common with it. */
  readonly identity: Uint8Array;
  /** The request itself, where it was decoded from just what is kept. */
  readonly decoded?: WireValue<"ForwardBackwardRequest">;
}

/** The form of a decoded request in which it is kept: the protobuf that `came` where that is in order. */
export function toReceivedPass(
  request: WireValue<"ForwardBackwardRequest">,
  came: Uint8Array | null,
): ReceivedPass {
  const { modelId, seqId, forwardOnly } = request;
  const kind = forwardOnly ? "forward" : "forward_backward";
  const isKept = came !== null && isInOrder(request);
  const payload = isKept ? came : canonicalPass(request);
  const identity = identityOf(kind, payload);
  return { modelId, seqId, kind, payload, identity, ...(isKept ? { decoded: request } : {}) };
}
