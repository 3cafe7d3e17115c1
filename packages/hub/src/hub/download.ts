import { createHash, type Hash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { HubError } from "../errors.js";
import { isMissing } from "../files/json.js";
import { fileSize } from "../files/paths.js";
import type { HubResponse } from "./http.js";
import { PassingFailure, retry, type RetryPolicy } from "./retry.js";

/** A file on the hub: its contents are known by their hash before they arrive. */
export interface RemoteFile {
  readonly name: string;
  readonly url: string;
  readonly etag: string;
  readonly sizeBytes: number;
}

/** What a download needs from outside. */
export interface DownloadOptions {
  readonly retryPolicy: RetryPolicy;
  readonly signal?: AbortSignal | undefined;
  /** Asks for the file from a position on. */
  readonly request: (fromByte: number) => Promise<HubResponse>;
  /** Called as bytes are on disk: how many of the file are. */
  readonly onBytes: (doneBytes: number) => void;
}

/**
 * Brings a file's contents to `blob`.
 *
 * - They are collected in `blob.incomplete`, which is kept when the download ends early and
 *   continued by the next one.
 * - Every byte is written to its own position. Two processes that download the same file write the
 *   same bytes to the same places, so they need no lock.
 * - The file gets its name only when its size, and its hash where the hub tells one, are right.
 */
export async function downloadBlob(
  file: RemoteFile,
  blob: string,
  options: DownloadOptions,
): Promise<void> {
  const incomplete = `${blob}.incomplete`;
  await mkdir(path.dirname(blob), { recursive: true });
  if (!(await fetchVerified(file, incomplete, options))) {
    // The part that was there from before may have been wrong; a fresh start settles it.
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
  // Not "a": appending would ignore positions.
  const handle = await open(incomplete, constants.O_RDWR | constants.O_CREAT, 0o644);
  try {
    const partBytes = (await handle.stat()).size;
    const usableBytes = partBytes > file.sizeBytes ? 0 : partBytes;
    if (usableBytes < partBytes) await handle.truncate(0);
    const state: DownloadState = { position: usableBytes, hash: startHash(file) };
    if (state.hash) await feed(state.hash, incomplete, usableBytes, options.signal);
    await fetchRest(file, handle, state, options);
    await handle.sync();
    if (!state.hash || state.hash.digest("hex") === file.etag) return true;
  } finally {
    await handle.close();
  }
  await rm(incomplete, { force: true });
  return false;
}

/** `hash` has seen the bytes before `position`. */
interface DownloadState {
  position: number;
  hash: Hash | null;
}

async function fetchRest(
  file: RemoteFile,
  handle: FileHandle,
  state: DownloadState,
  options: DownloadOptions,
): Promise<void> {
  options.onBytes(state.position);
  let before = state.position;
  const attempt = async () => {
    before = state.position;
    if (state.position === file.sizeBytes) return;
    const response = await options.request(state.position);
    state.position = startOf(file, response, state.position);
    if (state.position === 0) state.hash = startHash(file);
    for await (const chunk of response.chunks()) {
      if (state.position + chunk.length > file.sizeBytes) throw tooLong(file);
      await writeAt(handle, chunk, state.position);
      state.hash?.update(chunk);
      state.position += chunk.length;
      options.onBytes(state.position);
    }
    if (state.position < file.sizeBytes) {
      const missingBytes = file.sizeBytes - state.position;
      throw new PassingFailure(`${file.name} ended ${missingBytes} bytes early`);
    }
  };
  await retry(options.retryPolicy, attempt, {
    signal: options.signal,
    madeProgress: () => state.position > before,
  });
}

/** The position at which an answer starts: the one asked for, or zero if the server ignored it. */
function startOf(file: RemoteFile, response: HubResponse, askedByte: number): number {
  if (response.status === 200) return 0;
  const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  const [, start, total] = range ?? [];
  if (response.status === 206 && Number(start) === askedByte) {
    if (Number(total) === file.sizeBytes) return askedByte;
    response.cancel();
    throw tooLong(file);
  }
  response.cancel();
  throw new HubError(
    "hub_failed",
    `${file.name}: the hub answered ${response.status} to a request from byte ${askedByte}.`,
  );
}

function tooLong(file: RemoteFile): HubError {
  return new HubError(
    "hub_corrupt",
    `${file.name}: the hub announced ${file.sizeBytes} bytes but sends another size. Try again later.`,
  );
}

// Large files are known by the SHA-256 of their contents, small ones by their git object id.
function startHash(file: RemoteFile): Hash | null {
  if (/^[0-9a-f]{64}$/.test(file.etag)) return createHash("sha256");
  if (!/^[0-9a-f]{40}$/.test(file.etag)) return null;
  return createHash("sha1").update(`blob ${file.sizeBytes}\0`);
}

async function feed(
  hash: Hash,
  file: string,
  sizeBytes: number,
  signal?: AbortSignal,
): Promise<void> {
  if (sizeBytes === 0) return;
  const stream = createReadStream(file, { end: sizeBytes - 1, highWaterMark: 1 << 20 });
  for await (const chunk of stream) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
}

async function writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
