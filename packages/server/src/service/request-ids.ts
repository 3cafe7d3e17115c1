import { createHash, randomUUID } from "node:crypto";

/*
 * Ids of requests. Those with a place in a sequence are made from it, so that a retry finds the first
 * attempt even after a restart. Others are made from the idempotency key of the call where there is
 * one, which all attempts of one call share, and are random where there is none.
 */

/** Request `seq` of a model; 0 is its creation. */
export function modelRequestId(modelId: string, seq: number): string {
  return `${modelId}:${seq}`;
}

/** Request `seq` of a sampling session. */
export function samplerRequestId(samplerId: string, seq: number | bigint): string {
  return `${samplerId}:${seq}`;
}

/** A request without a place in any sequence. */
export function looseRequestId(owner: string, idempotencyKey: string | null): string {
  if (idempotencyKey === null) return `r-${randomUUID()}`;
  const hash = createHash("sha256").update(JSON.stringify([owner, idempotencyKey]));
  return `r-${hash.digest("hex").slice(0, 32)}`;
}

/** The idempotency key of a call. */
export function idempotencyKeyOf(headers: Headers): string | null {
  const key = headers.get("x-idempotency-key");
  return key === null || key === "" || key.length > 200 ? null : key;
}
