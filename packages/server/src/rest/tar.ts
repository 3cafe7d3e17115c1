import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";

const blockBytes = 512;
/** The format has eleven octal digits for a size. */
const maxFileBytes = 8 ** 11 - 1;

/** A file on its way into an archive. */
export interface TarEntry {
  readonly name: string;
  readonly path: string;
  /** Bytes that take the place of those before `fromByte`. */
  readonly replaced?: { readonly head: Uint8Array; readonly fromByte: number };
}

/** Streams files as a tar archive (ustar), holding only a piece of one at a time. */
export async function* tarStream(entries: readonly TarEntry[]): AsyncGenerator<Uint8Array> {
  for (const { name, path, replaced = { head: new Uint8Array(), fromByte: 0 } } of entries) {
    const { size: fileBytes, mtimeMs } = await stat(path);
    const { head, fromByte: start } = replaced;
    const size = head.length + fileBytes - start;
    yield header(name, size, Math.floor(mtimeMs / 1000));
    yield head;
    if (fileBytes > start) {
      yield* createReadStream(path, { start, end: fileBytes - 1, highWaterMark: 256 * 1024 });
    }
    yield new Uint8Array((blockBytes - (size % blockBytes)) % blockBytes);
  }
  yield new Uint8Array(2 * blockBytes);
}

function header(name: string, sizeBytes: number, modifiedSec: number): Uint8Array {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`${name} is too long for an archive`);
  if (sizeBytes > maxFileBytes) throw new RangeError(`${name} is too large for an archive`);
  const block = Buffer.alloc(blockBytes);
  block.write(name, 0);
  block.write(octal(0o644, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(sizeBytes, 12), 124);
  block.write(octal(modifiedSec, 12), 136);
  block.write("        ", 148); // the checksum counts as spaces while it is computed
  block.write("0", 156);
  block.write("ustar\u000000", 257);
  const checksum = block.reduce((sum, byte) => sum + byte, 0);
  block.write(`${checksum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}
