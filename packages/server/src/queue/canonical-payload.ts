import { createHash } from "node:crypto";
import {
  Datum,
  encodeJson,
  encodeProto,
  stringifyJson,
  type WireInput,
  type WireTypeName,
  type WireValue,
} from "tinker-ts/wire";

/*
 * One form per request, whatever dialect it came in and in whatever order its fields were written. It is
 * what the journal keeps and what tells a retry from another request under the same number. Maps of the
 * user's own keep the order of their keys, which is the same in every attempt of one call.
 */

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
  return createHash("sha256").update(bytes).digest();
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
