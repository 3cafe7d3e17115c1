import type { FileHandle } from "node:fs/promises";

/** The beginning of an answer that carries a file, or a part of one. */
export interface FileAnswer {
  readonly status: number;
  /** The header of this name; null without one. */
  readonly contentRange: string | null;
}

/**
 * A file that arrives over the network, in as many answers as it takes. Every byte is written to its own
 * position, so what broke goes on where it broke; a server that cannot go on begins anew.
 */
export class ArrivingFile {
  readonly #file: FileHandle;
  #position: number;

  /** `position` is where bytes from before end. */
  constructor(file: FileHandle, position = 0) {
    this.#file = file;
    this.#position = position;
  }

  /** Bytes that have arrived; the next answer should begin there. */
  get position(): number {
    return this.#position;
  }

  /** What arrived is of no use any more. */
  restart(): void {
    this.#position = 0;
  }

  /** Looks at where an answer begins; false when it is neither the next part nor the whole file. */
  begin({ status, contentRange }: FileAnswer): boolean {
    // A part that does not say where it belongs belongs nowhere.
    const from = status === 206 ? /^bytes (\d+)-/.exec(contentRange ?? "")?.[1] : "0";
    if (from === undefined || (from !== "0" && Number(from) !== this.#position)) return false;
    this.#position = Number(from);
    return true;
  }

  /** Writes what comes; `onPart` hears of every part once it is written, and where it began. */
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
