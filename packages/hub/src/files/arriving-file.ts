import type { FileHandle } from "node:fs/promises";

/** Status and headers of a response with a file, or a part of one. */
export interface FileAnswer {
  readonly status: number;
  /** The header of this name; null without one. */
  readonly contentRange: string | null;
}

/**
 * A file downloaded in one or more responses. Every byte is written to its own
 * position, so that a broken download can resume; a server without range support starts over.
 */
export class ArrivingFile {
  readonly #file: FileHandle;
  #position: number;

  /** `position` is the number of bytes already on disk. */
  constructor(file: FileHandle, position = 0) {
    this.#file = file;
    this.#position = position;
  }

  /** Bytes that have arrived; the next response should begin there. */
  get position(): number {
    return this.#position;
  }

  /** Discards the downloaded bytes. */
  restart(): void {
    this.#position = 0;
  }

  /** Checks where a response begins; false if it is neither the next part nor the whole file. */
  begin({ status, contentRange }: FileAnswer): boolean {
    // A part without a valid content-range cannot be placed.
    const from = status === 206 ? /^bytes (\d+)-/.exec(contentRange ?? "")?.[1] : "0";
    if (from === undefined || (from !== "0" && Number(from) !== this.#position)) return false;
    this.#position = Number(from);
    return true;
  }

  /** Writes a body; `onPart` is called with every part and its position after it is written. */
  async take(
    parts: AsyncIterable<Uint8Array>,
    onPart: (part: Uint8Array, position: number) => void,
  ): Promise<void> {
    for await (const part of parts) {
      const start = this.#position;
      for (let done = 0; done < part.length;) {
        const left = part.length - done;
        const { bytesWritten } = await this.#file.write(part, done, left, start + done);
        done += bytesWritten;
      }
      this.#position = start + part.length;
      onPart(part, start);
    }
  }
}
