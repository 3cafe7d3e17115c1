import { DamagedError } from "../errors/damaged-error.js";
import { readBlob, type BlobFiles } from "./blob-files.js";
import type { Row } from "./sql.js";

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
