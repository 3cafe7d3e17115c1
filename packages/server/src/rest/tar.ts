import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";

const blockBytes = 512;
/** The format has eleven octal digits for a size. */
const maxFileBytes = 8 ** 11 - 1;

/** A file on its way into an archive. */
export interface TarEntry {
  readonly name: string;
  readonly path: string;
}

/** Streams files as a tar archive (ustar), never holding more than a piece of one. */
export async function* tarStream(entries: readonly TarEntry[]): AsyncGenerator<Uint8Array> {
  for (const { name, path } of entries) {
    const { size, mtimeMs } = await stat(path);
    yield header(name, size, Math.floor(mtimeMs / 1000));
    if (size > 0) {
      yield* createReadStream(path, { end: size - 1, highWaterMark: 256 * 1024 });
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
