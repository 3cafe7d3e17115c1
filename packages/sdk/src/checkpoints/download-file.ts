import path from "node:path";
import type { Connection } from "../session/connection.js";
import { open, type FileHandle } from "node:fs/promises";
import type { ArrivingFile } from "@tinker-ts/hub/files";
import { APIConnectionError, APIStatusError } from "../errors/api-error.js";
import { ArgumentError } from "../errors/argument-error.js";
import { packageVersion } from "../runtime/version.js";
import { isSuccess, type Headers, type HttpResponse } from "../transport/message.js";
import { toStatusError } from "../transport/responses.js";
import { growingPauseMs, retry, retryTable, type RetryPolicy } from "../transport/retry.js";

const silenceMs = 60_000;

/** How far a download is. */
export interface DownloadProgress {
  /** Bytes that are on disk. */
  readonly receivedBytes: number;
  /** Bytes of the whole file; null when the server does not say. */
  readonly totalBytes: number | null;
}

/** A download to a file. */
export interface FileDownload {
  readonly connection: Connection;
  /** Asks for a signed address; they expire. */
  readonly getUrl: () => Promise<string>;
  readonly file: string;
  readonly onProgress: (progress: DownloadProgress) => void;
  readonly signal: AbortSignal;
}

/**
 * Downloads to a file, brings it to disk and returns its size. A connection that breaks is taken up
 * again where it broke, if the server can do that; a file of another length than promised is refused.
 */
export async function downloadFile(download: FileDownload): Promise<number> {
  const { ArrivingFile } = await import("@tinker-ts/hub/files");
  const file = await open(download.file, "w");
  try {
    const sizeBytes = await new Downloader(download, file, new ArrivingFile(file)).run();
    await file.sync();
    return sizeBytes;
  } finally {
    await file.close();
  }
}

class Downloader implements RetryPolicy {
  readonly #download: FileDownload;
  readonly #file: FileHandle;
  readonly #arriving: ArrivingFile;
  #url: string | undefined;
  #etag: string | undefined;
  #bytesBefore = 0;
  #failuresInARow = 0;

  constructor(download: FileDownload, file: FileHandle, arriving: ArrivingFile) {
    this.#download = download;
    this.#file = file;
    this.#arriving = arriving;
  }

  async run(): Promise<number> {
    const { connection, getUrl, signal } = this.#download;
    const { clock } = connection.runtime;
    const attempt = async (): Promise<number> => {
      this.#url ??= await getUrl();
      this.#bytesBefore = this.#arriving.position;
      await this.#receive(this.#url);
      return this.#arriving.position;
    };
    return retry(attempt, this, { clock, signal });
  }

  /** Broken connections and servers in trouble; 401, 403 and 410 mean that the address has expired. */
  shouldRetry(error: unknown): boolean {
    // An attempt that brought something counts as a first one.
    if (this.#arriving.position > this.#bytesBefore) this.#failuresInARow = 0;
    if (++this.#failuresInARow >= retryTable.download.tries) return false;
    if (!(error instanceof APIStatusError)) return error instanceof APIConnectionError;
    const { isRetryable, status } = error;
    return isRetryable || [401, 403, 410].includes(status) || isRangeRefused(error);
  }

  delayFor(): number {
    return growingPauseMs(retryTable.download, this.#failuresInARow - 1);
  }

  onFailure(error: unknown): void {
    if (error instanceof APIStatusError) this.#url = undefined;
    if (isRangeRefused(error)) this.#arriving.restart();
  }

  async #receive(url: string): Promise<void> {
    const { connection, signal, onProgress } = this.#download;
    const headers = rangeHeaders(this.#arriving.position, this.#etag);
    const response = await openUrl(connection, url, headers, signal);
    const { status, parts = nothing(), headers: received } = response;
    const arriving = this.#arriving;
    if (!arriving.begin({ status, contentRange: received["content-range"] ?? null })) {
      arriving.restart();
      // Stopping early closes the connection.
      for await (const _ of parts) break;
      throw new APIConnectionError("The server sent another part of the file than asked for.");
    }
    this.#etag = received["etag"];
    const length = received["content-length"];
    const totalBytes = length === undefined ? null : arriving.position + Number(length);
    await arriving.take(parts, () => onProgress({ receivedBytes: arriving.position, totalBytes }));
    await this.#file.truncate(arriving.position);
    if (totalBytes !== null && arriving.position !== totalBytes) {
      throw new APIConnectionError(
        `The download has ${arriving.position} bytes instead of the ${totalBytes} promised.`,
      );
    }
  }
}

const commonHeaders: Headers = {
  accept: "*/*",
  // What is stored packed is wanted packed: positions and lengths are those of the stored bytes.
  "accept-encoding": "identity",
  "user-agent": `tinker-ts/${packageVersion}`,
};

/** Opens a signed address, which needs no credential and gets none; the body is read as it comes. */
async function openUrl(
  { parts: { send, baseUrl } }: Connection,
  url: string,
  headers: Headers,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { origin, pathname, search } = readAddress(url, baseUrl.origin);
  const request = {
    method: "GET",
    origin,
    path: pathname + search,
    commonHeaders,
    headers,
    body: null,
    idempotencyKey: null,
    retryCount: 0,
    pool: "storage",
    timeoutMs: silenceMs,
    maxAnswerBytes: 2 ** 20,
    streams: true,
    isBackground: false,
    followsRedirects: true,
    signal,
  } as const;
  const response = await send(request);
  if (isSuccess(response)) return response;
  throw toStatusError(response, request);
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function rangeHeaders(firstByte: number, etag: string | undefined): Record<string, string> {
  if (firstByte === 0) return {};
  return { range: `bytes=${firstByte}-`, ...(etag === undefined ? {} : { "if-range": etag }) };
}

/** The file is shorter than what was received of it: it is another one now. */
function isRangeRefused(error: unknown): boolean {
  return error instanceof APIStatusError && error.status === 416;
}

function readAddress(url: string, origin: string): URL {
  const address = URL.canParse(url, origin) ? new URL(url, origin) : undefined;
  if (address?.protocol === "http:" || address?.protocol === "https:") return address;
  throw new ArgumentError(
    "url",
    `the server gave ${JSON.stringify(url)}, which cannot be downloaded`,
  );
}

/** A file on disk. */
export interface DownloadedFile {
  /** Its absolute path. */
  readonly file: string;
  /** Its size. */
  readonly sizeBytes: number;
}

/** Downloads what is behind a signed address to a file, which appears as a whole or not at all. */
export async function downloadTo(
  connection: Connection,
  getUrl: () => Promise<string>,
  target: { readonly file: string; readonly onProgress: (progress: DownloadProgress) => void },
  signal: AbortSignal,
): Promise<DownloadedFile> {
  const file = path.resolve(target.file);
  const { onProgress } = target;
  const { writeFileAtomically } = await import("@tinker-ts/hub/files");
  let sizeBytes = 0;
  await writeFileAtomically(file, async (part) => {
    sizeBytes = await downloadFile({ connection, getUrl, file: part, onProgress, signal });
  });
  return { file, sizeBytes };
}
