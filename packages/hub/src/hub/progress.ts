import type { RemoteFile } from "./download.js";

/** Progress of a download. */
export interface DownloadProgress {
  /** The file being downloaded. */
  readonly file: string;
  readonly fileBytes: number;
  readonly fileTotalBytes: number;
  /** Over all files known so far; the weights are added once the small files are complete. */
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

  /** Records the bytes of a file and reports the progress. */
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
