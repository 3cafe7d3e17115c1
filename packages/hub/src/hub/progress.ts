import type { RemoteFile } from "./download.js";

/** How far a download is. */
export interface DownloadProgress {
  /** The file that is arriving. */
  readonly file: string;
  readonly fileBytes: number;
  readonly fileTotalBytes: number;
  /** Over all files known so far; the weights join when the small files are there. */
  readonly bytes: number;
  readonly totalBytes: number;
}

/** Adds up the progress of several files. */
export class ProgressCounter {
  readonly #onProgress: ((progress: DownloadProgress) => void) | undefined;
  readonly #doneBytes = new Map<string, number>();
  #totalBytes = 0;

  constructor(onProgress: ((progress: DownloadProgress) => void) | undefined) {
    this.#onProgress = onProgress;
  }

  /** Adds files to the total. */
  expect(files: readonly RemoteFile[]): void {
    for (const { sizeBytes } of files) this.#totalBytes += sizeBytes;
  }

  /** Notes how much of a file is there and tells the caller. */
  report(file: RemoteFile, fileBytes: number): void {
    if (this.#doneBytes.get(file.name) === fileBytes) return;
    this.#doneBytes.set(file.name, fileBytes);
    this.#onProgress?.({
      file: file.name,
      fileBytes,
      fileTotalBytes: file.sizeBytes,
      bytes: [...this.#doneBytes.values()].reduce((sum, done) => sum + done, 0),
      totalBytes: this.#totalBytes,
    });
  }
}
