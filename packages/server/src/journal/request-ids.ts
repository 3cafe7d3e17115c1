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

/** Clients of a sampling session number their samples from their own number times this. */
const numbersPerClient = 1_000_000_000n;

/** A client of a sampling session. */
export function samplerClient(samplerId: string, client: bigint): string {
  return `${samplerId}/${client}`;
}

/** The client of a sampling session that a sample belongs to. */
export function samplerClientOf(requestId: string): string | undefined {
  const [, samplerId, seq] = /^(.+:sample:\d+):(\d+)$/.exec(requestId) ?? [];
  if (samplerId === undefined || seq === undefined) return undefined;
  return samplerClient(samplerId, BigInt(seq) / numbersPerClient);
}

/** The sequences of a sample in their order: fixed by the request, so that every receipt of it names the same. */
export function sampleSequenceIds(requestId: string, numSamples: number): string[] {
  return Array.from({ length: numSamples }, (_, index) => `${requestId}-${index}`);
}

/** A request without a place in any sequence. */
export function unsequencedRequestId(owner: string, idempotencyKey: string | null): string {
  if (idempotencyKey === null) return `r-${randomUUID()}`;
  const hash = createHash("sha256").update(JSON.stringify([owner, idempotencyKey]));
  return `r-${hash.digest("hex").slice(0, 32)}`;
}

/** The idempotency key of a call. */
export function idempotencyKeyOf(headers: Headers): string | null {
  const key = headers.get("x-idempotency-key");
  return key === null || key === "" || key.length > 200 ? null : key;
}
