import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { HubError } from "../errors.js";
import { ArrivingFile } from "../files/arriving-file.js";
import { isMissing } from "../files/json.js";
import { fileSize } from "../files/paths.js";
import type { HubResponse } from "./http.js";
import { TransientError, retryTransient, type RetryPolicy } from "./transient-error.js";

/** A file on the hub: its hash is known before the download. */
export interface RemoteFile {
  readonly name: string;
  readonly url: string;
  readonly etag: string;
  readonly sizeBytes: number;
}

/** Dependencies of a download. */
export interface DownloadOptions {
  readonly retryPolicy: RetryPolicy;
  readonly signal?: AbortSignal | undefined;
  /** Requests the file from a position on. */
  readonly request: (fromByte: number) => Promise<HubResponse>;
  /** Called with the number of bytes on disk. */
  readonly onBytes: (doneBytes: number) => void;
}

/**
 * Downloads a file's contents to `blob`.
 *
 * - They are collected in `blob.incomplete`, which is kept when the download ends early and
 *   continued by the next one.
 * - Every byte is written to its own position. Two processes that download the same file write the
 *   same bytes to the same places, so they need no lock.
 * - The file gets its name only when its size, and its hash if the hub reports one, are right.
 */
export async function downloadBlob(
  file: RemoteFile,
  blob: string,
  options: DownloadOptions,
): Promise<void> {
  const incomplete = `${blob}.incomplete`;
  await mkdir(path.dirname(blob), { recursive: true });
  if (!(await fetchVerified(file, incomplete, options))) {
    // The part from before may have been wrong: start over once.
    if (!(await fetchVerified(file, incomplete, options))) {
      throw new HubError(
        "hub_corrupt",
        `${file.name}: the hub sent contents that do not match their hash. Try again later.`,
      );
    }
  }
  await rename(incomplete, blob).catch(async (error: unknown) => {
    const finishedElsewhere = isMissing(error) && (await fileSize(blob)) === file.sizeBytes;
    if (!finishedElsewhere) throw error;
  });
}

/** Completes the partial file; false, and the file is removed, if the result has the wrong hash. */
async function fetchVerified(
  file: RemoteFile,
  incomplete: string,
  options: DownloadOptions,
): Promise<boolean> {
  // Not "a": appending ignores positions.
  const handle = await open(incomplete, constants.O_RDWR | constants.O_CREAT, 0o644);
  try {
    const partBytes = (await handle.stat()).size;
    const usableBytes = partBytes > file.sizeBytes ? 0 : partBytes;
    if (usableBytes < partBytes) await handle.truncate(0);
    const arriving = new ArrivingFile(handle, usableBytes);
    const hash = startHash(file);
    if (hash) await feed(hash, handle, usableBytes, options.signal);
    const whole = await fetchRest(file, arriving, hash, options);
    await handle.sync();
    if (!whole || whole.digest("hex") === file.etag) return true;
  } finally {
    await handle.close();
  }
  await rm(incomplete, { force: true });
  return false;
}

/** Downloads the missing part; `hash` covers the existing part, and the returned one covers everything. */
async function fetchRest(
  file: RemoteFile,
  arriving: ArrivingFile,
  hash: Hash | null,
  options: DownloadOptions,
): Promise<Hash | null> {
  options.onBytes(arriving.position);
  let seen = hash;
  let before = arriving.position;
  const attempt = async () => {
    before = arriving.position;
    if (arriving.position === file.sizeBytes) return;
    const response = await options.request(arriving.position);
    checkAnswer(file, response, arriving);
    if (arriving.position === 0) seen = startHash(file);
    await arriving.take(response.chunks(), (part) => {
      if (arriving.position > file.sizeBytes) throw tooLong(file);
      seen?.update(part);
      options.onBytes(arriving.position);
    });
    if (arriving.position < file.sizeBytes) {
      const missingBytes = file.sizeBytes - arriving.position;
      throw new TransientError(`${file.name} ended ${missingBytes} bytes early`);
    }
  };
  await retryTransient(attempt, options.retryPolicy, {
    signal: options.signal,
    madeProgress: () => arriving.position > before,
  });
  return seen;
}

/** Rejects a response that is neither the file nor the requested part. */
function checkAnswer(file: RemoteFile, response: HubResponse, arriving: ArrivingFile): void {
  const { status, headers } = response;
  const askedByte = arriving.position;
  const contentRange = headers.get("content-range");
  const total = status === 206 ? /\/(\d+)$/.exec(contentRange ?? "")?.[1] : String(file.sizeBytes);
  const isPart = status === 200 || status === 206;
  if (isPart && total !== undefined && arriving.begin({ status, contentRange })) {
    if (Number(total) === file.sizeBytes) return;
    response.cancel();
    throw tooLong(file);
  }
  response.cancel();
  throw new HubError(
    "hub_failed",
    `${file.name}: the hub answered ${status} to a request from byte ${askedByte}.`,
  );
}

function tooLong(file: RemoteFile): HubError {
  return new HubError(
    "hub_corrupt",
    `${file.name}: the hub announced ${file.sizeBytes} bytes but sends another size. Try again later.`,
  );
}

// Large files are identified by the SHA-256 of their contents, small ones by their git object id.
function startHash(file: RemoteFile): Hash | null {
  if (/^[0-9a-f]{64}$/.test(file.etag)) return createHash("sha256");
  if (!/^[0-9a-f]{40}$/.test(file.etag)) return null;
  return createHash("sha1").update(`blob ${file.sizeBytes}\0`);
}

// Through the open file: its name may be gone, because another download has completed it.
async function feed(
  hash: Hash,
  handle: FileHandle,
  sizeBytes: number,
  signal?: AbortSignal,
): Promise<void> {
  if (sizeBytes === 0) return;
  const stream = handle.createReadStream({
    start: 0,
    end: sizeBytes - 1,
    highWaterMark: 1 << 20,
    autoClose: false,
  });
  for await (const chunk of stream) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
}
