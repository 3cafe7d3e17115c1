import { createHash, hash, timingSafeEqual } from "node:crypto";
import {
  Datum,
  encodeJson,
  encodeProto,
  stringifyJson,
  type WireInput,
  type WireTypeName,
  type WireValue,
} from "tinker-ts/wire";
import { DamagedError } from "../errors/damaged-error.js";
import { readStored, type StoredBytes } from "./content.js";

/*
 * One form per request, whatever dialect it came in and in whatever order its fields were written. It is
 * what the journal keeps and what tells a retry from another request under the same number. Maps of the
 * user's own keep the order of their keys, which is the same in every attempt of one call.
 */

/** What is smaller takes the event loop less than a millisecond. */
const smallBytes = 256 * 1024;

/** A forward or forward/backward request as protobuf with the names of each datum in order. */
export function canonicalPass(request: WireValue<"ForwardBackwardRequest">): Uint8Array {
  const { data, lossFn, lossFnConfig } = request.forwardBackwardInput;
  return encodeProto("ForwardBackwardRequest", {
    ...request,
    forwardBackwardInput: {
      data: data.map(withSortedInputs),
      lossFn,
      lossFnConfig: lossFnConfig && sortedRecord(lossFnConfig),
    },
  });
}

/** Whether the protobuf that a request was decoded from can stand for it: its names are in order already. */
export function isInOrder(request: WireValue<"ForwardBackwardRequest">): boolean {
  const { data, lossFnConfig } = request.forwardBackwardInput;
  return isSorted(lossFnConfig ?? {}) && data.every(({ lossFnInputs }) => isSorted(lossFnInputs));
}

/** Any other request as JSON, with its fields in the order of the schema. */
export function canonicalJson<N extends WireTypeName>(
  typeName: N,
  value: WireInput<N>,
): Uint8Array {
  return Buffer.from(stringifyJson(encodeJson(typeName, value)));
}

/** What a retry has in common with the first attempt. */
export function identityOf(kind: string, canonical: Uint8Array): Uint8Array {
  return createHash("sha256").update(`${kind}\n`).update(canonical).digest();
}

/** SHA-256 of bytes. */
export function digestOf(bytes: Uint8Array): Uint8Array {
  return hash("sha256", bytes, "buffer");
}

/** SHA-256 of a result; that of a large one is computed elsewhere than on the event loop. */
export async function resultDigest(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes.length <= smallBytes) return digestOf(bytes);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Where a payload is, with what tells whether it is the one that was accepted. */
export interface StoredPayload {
  readonly stored: StoredBytes;
  readonly kind: string;
  /** What the request has in common with its retries. */
  readonly identity: Uint8Array;
  /** SHA-256 of the payload, where the identity is not made from all of it. */
  readonly digest: Uint8Array | null;
}

/** Reads a payload, if it is the one that was accepted; a damaged one throws. */
export async function readPayload(payload: StoredPayload): Promise<Uint8Array> {
  const { stored, kind, identity, digest } = payload;
  const bytes = await readStored(stored);
  // Such a save of an older server has no digest, and its identity leaves a field out.
  if (kind === "save_weights_for_sampler" && !digest) return bytes;
  const isSame = digest
    ? timingSafeEqual(digestOf(bytes), digest)
    : timingSafeEqual(identityOf(kind, bytes), identity);
  if (isSame) return bytes;
  throw new DamagedError(stored.file, "does not match its SHA-256");
}

function withSortedInputs(datum: Datum): Datum {
  if (isSorted(datum.lossFnInputs)) return datum;
  return new Datum({
    modelInput: datum.modelInput,
    lossFnInputs: sortedRecord(datum.lossFnInputs),
  });
}

function isSorted(record: object): boolean {
  const names = Object.keys(record);
  return names.every((name, index) => index === 0 || names[index - 1]! < name);
}

function sortedRecord<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
