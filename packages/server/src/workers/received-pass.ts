import type { WireValue } from "tinker-ts/wire";
import { canonicalPass, identityOf, isInOrder } from "../store/payloads.js";

/** A forward or forward/backward request as it is accepted: where it belongs and what is kept of it. */
export interface ReceivedPass {
  readonly modelId: string;
  readonly seqId: number | null;
  readonly kind: "forward" | "forward_backward";
  /** The form in which it is kept. */
  readonly payload: Uint8Array;
  /** What a retry has in common with it. */
  readonly identity: Uint8Array;
}

/** The form of a decoded request in which it is kept: the protobuf that `came` where that is in order. */
export function toReceivedPass(
  request: WireValue<"ForwardBackwardRequest">,
  came: Uint8Array | null,
): ReceivedPass {
  const { modelId, seqId, forwardOnly } = request;
  const kind = forwardOnly ? "forward" : "forward_backward";
  const payload = came !== null && isInOrder(request) ? came : canonicalPass(request);
  return { modelId, seqId, kind, payload, identity: identityOf(kind, payload) };
}
