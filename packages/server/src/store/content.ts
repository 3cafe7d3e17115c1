import { DamagedError } from "../errors/damaged-error.js";
import { readBlob, type BlobFiles } from "./blob-files.js";
import type { Row } from "./sql.js";
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

/** Contents above this size go into a file of their own. */
const inlineLimitBytes = 16 * 1024;

/** Bytes that belong to a row: inside it, or in a blob file. */
export interface Content {
  readonly inline: Uint8Array | null;
  readonly blob: string | null;
  readonly sizeBytes: number;
}

/** What a file must be like. */
export interface FileDigest {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** The files of a folder by name. */
export type FolderFiles = Readonly<Record<string, FileDigest>>;

/** The files in a column. */
export function filesOf(row: Row): FolderFiles | null {
  return row["files"] === null ? null : (JSON.parse(row["files"] as string) as FolderFiles);
}

/** Whether bytes would get a file of their own. */
export function isLarge(bytes: Uint8Array): boolean {
  return isLargeSize(bytes.length);
}

/** Whether so many bytes have a file of their own. */
export function isLargeSize(sizeBytes: number): boolean {
  return sizeBytes > inlineLimitBytes;
}

/** Bytes as a part of their row. */
export function inlineContent(bytes: Uint8Array): Content {
  return { inline: bytes, blob: null, sizeBytes: bytes.length };
}

/** Puts bytes where their size wants them; call it before the row is written. */
export async function storeContent(bytes: Uint8Array, blobs: BlobFiles): Promise<Content> {
  if (!isLarge(bytes)) return inlineContent(bytes);
  return { inline: null, blob: await blobs.put(bytes), sizeBytes: bytes.length };
}

/** Where bytes are, as messages name it. */
export function placeOf({ blob }: Content): string {
  return blob === null ? "server.db" : `blobs/${blob}`;
}

/** Bytes that were stored, or where a thread can read them. */
export interface StoredBytes {
  readonly inline: Uint8Array | null;
  readonly path: string | null;
  /** The same place, as messages name it. */
  readonly file: string;
  readonly sizeBytes: number;
}

/** Where the bytes of a row are, or null when it has none any more. */
export function storedBytes(content: Content, blobs: BlobFiles): StoredBytes | null {
  const { inline, blob, sizeBytes } = content;
  if (!inline && blob === null) return null;
  const path = inline ? null : blobs.pathOf(blob!);
  return { inline, path, file: placeOf(content), sizeBytes };
}

/** Reads as many bytes back as were stored. */
export async function readStored({
  inline,
  path,
  file,
  sizeBytes,
}: StoredBytes): Promise<Uint8Array> {
  const bytes = inline ?? (await readBlob(path!));
  if (!bytes) throw new DamagedError(file, "is missing");
  if (bytes.length !== sizeBytes) {
    throw new DamagedError(file, `has ${bytes.length} of ${sizeBytes} bytes`);
  }
  return bytes;
}

/** The bytes of a row, or null when it has none any more. */
export async function readContent(content: Content, blobs: BlobFiles): Promise<Uint8Array | null> {
  const stored = storedBytes(content, blobs);
  return stored && readStored(stored);
}

/** The content in the columns `<name>`, `<name>_blob` and `<name>_bytes`. */
export function contentOf(row: Row, name: "payload" | "result"): Content {
  return {
    inline: row[name] as Uint8Array | null,
    blob: row[`${name}_blob`] as string | null,
    sizeBytes: Number(row[`${name}_bytes`]),
  };
}

/*
 * One form per request, whatever dialect it came in and in whatever order its fields were written. It is
 * what the journal keeps and what distinguishes a retry from another request under the same number. Maps of the
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

/** True when the protobuf of a request can be stored as it is: its names are in order already. */
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

/** The place of a payload, with what identifies it as the accepted one. */
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
