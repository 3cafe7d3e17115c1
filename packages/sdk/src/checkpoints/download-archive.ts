import { open, type FileHandle } from "node:fs/promises";
import { APIConnectionError, APIStatusError } from "../errors/api-error.js";
import { TinkerError } from "../errors/tinker-error.js";
import { sleep } from "../runtime/sleep.js";
import type { Connection } from "../session/connection.js";
import { openArchive } from "./archive-stream.js";

const maxAttempts = 5;
const firstDelayMs = 1_000;
const silenceMs = 60_000;

/** How far a download is. */
export interface DownloadProgress {
  /** Bytes that are there. */
  readonly receivedBytes: number;
  /** Size of the archive; null when the server does not say. */
  readonly totalBytes: number | null;
}

/** What a download needs to know. */
export interface ArchiveDownload {
  readonly connection: Connection;
  /** Asks for a signed address; they expire. */
  readonly getUrl: () => Promise<string>;
  readonly file: string;
  readonly onProgress: (progress: DownloadProgress) => void;
  readonly signal: AbortSignal;
}

/**
 * Downloads an archive to a file and returns its size. A connection that breaks is taken up again
 * where it broke, if the server can do that; an archive of another length than promised is refused.
 */
export async function downloadArchive(download: ArchiveDownload): Promise<number> {
  const file = await open(download.file, "w");
  try {
    return await new Downloader(download, file).run();
  } finally {
    await file.close();
  }
}

class Downloader {
  readonly #download: ArchiveDownload;
  readonly #file: FileHandle;
  #receivedBytes = 0;
  #totalBytes: number | null = null;
  #etag: string | null = null;

  constructor(download: ArchiveDownload, file: FileHandle) {
    this.#download = download;
    this.#file = file;
  }

  async run(): Promise<number> {
    const { connection, getUrl, signal } = this.#download;
    let url = await getUrl();
    for (let attempt = 1; ; attempt++) {
      const before = this.#receivedBytes;
      try {
        await this.#receive(url);
        return this.#receivedBytes;
      } catch (error) {
        signal.throwIfAborted();
        // An attempt that brought something counts as a first one.
        if (this.#receivedBytes > before) attempt = 1;
        if (attempt >= maxAttempts || !isWorthAnother(error)) throw error;
        if (isRangeRefused(error)) this.#receivedBytes = 0;
        await sleep(connection.runtime.clock, firstDelayMs * 2 ** (attempt - 1), signal);
        if (error instanceof APIStatusError) url = await getUrl();
      }
    }
  }

  async #receive(url: string): Promise<void> {
    const { connection, signal, onProgress } = this.#download;
    const quiet = new QuietTimer(connection, signal);
    try {
      const from = { byte: this.#receivedBytes, etag: this.#etag };
      const stream = await openArchive(connection, url, from, quiet.signal);
      this.#startAt(stream.firstByte);
      this.#etag = stream.etag;
      this.#totalBytes =
        stream.remainingBytes === null ? null : this.#receivedBytes + stream.remainingBytes;
      for await (const part of stream.parts) {
        quiet.restart();
        await this.#file.write(part, 0, part.byteLength, this.#receivedBytes);
        this.#receivedBytes += part.byteLength;
        onProgress({ receivedBytes: this.#receivedBytes, totalBytes: this.#totalBytes });
      }
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof TinkerError) throw cause;
      throw new APIConnectionError("The connection broke while the archive was downloaded.", {
        cause,
      });
    } finally {
      quiet.stop();
    }
    await this.#file.truncate(this.#receivedBytes);
    if (this.#totalBytes !== null && this.#receivedBytes !== this.#totalBytes) {
      throw new APIConnectionError(
        `The archive has ${this.#receivedBytes} bytes instead of the ${this.#totalBytes} promised.`,
      );
    }
  }

  /** What arrives goes where it belongs; a part that was not asked for means to begin anew. */
  #startAt(firstByte: number): void {
    const isAsked = firstByte === this.#receivedBytes;
    this.#receivedBytes = isAsked ? firstByte : 0;
    if (isAsked || firstByte === 0) return;
    throw new APIConnectionError("The server sent another part of the archive than asked for.");
  }
}

/** Gives a download up that has been silent for too long. */
class QuietTimer {
  readonly #connection: Connection;
  readonly #abort = new AbortController();
  readonly #onOuterAbort: () => void;
  readonly #outer: AbortSignal;
  #cancel: () => void = () => {};

  constructor(connection: Connection, outer: AbortSignal) {
    this.#connection = connection;
    this.#outer = outer;
    this.#onOuterAbort = () => this.#abort.abort(outer.reason);
    outer.addEventListener("abort", this.#onOuterAbort, { once: true });
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  restart(): void {
    this.#cancel();
    this.#cancel = this.#connection.runtime.clock.schedule(silenceMs, () =>
      this.#abort.abort(new Error("nothing was received for a minute")),
    );
  }

  stop(): void {
    this.#cancel();
    this.#outer.removeEventListener("abort", this.#onOuterAbort);
  }
}

/** Broken connections and servers in trouble; 401, 403 and 410 mean that the address has expired. */
function isWorthAnother(error: unknown): boolean {
  if (error instanceof APIStatusError) {
    const { isRetryable, status } = error;
    return isRetryable || [401, 403, 410].includes(status) || isRangeRefused(error);
  }
  return error instanceof APIConnectionError;
}

/** The archive is shorter than what was received of it: it is another one now. */
function isRangeRefused(error: unknown): boolean {
  return error instanceof APIStatusError && error.status === 416;
}
