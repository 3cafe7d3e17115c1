import { open, type FileHandle } from "node:fs/promises";
import { WeightsError } from "./weights-error.js";

/** A tensor in a file. */
export interface TensorEntry {
  readonly name: string;
  /** As the file names it: `BF16`. */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes from the beginning of the file. */
  readonly start: number;
  readonly end: number;
}

/** A tensor to be written; its bytes are asked for when it is its turn. */
export interface TensorToWrite {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
  readonly read: () => Promise<Uint8Array>;
}

const maxHeaderBytes = 100_000_000;

/** A safetensors file: its header in memory, its tensors on the disk. */
export class SafetensorsFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle, tensors: Map<string, TensorEntry>) {
    this.path = path;
    this.#handle = handle;
    this.tensors = tensors;
  }

  static async open(path: string): Promise<SafetensorsFile> {
    const handle = await open(path, "r");
    try {
      const { size } = await handle.stat();
      const { buffer } = await handle.read(Buffer.alloc(8), 0, 8, 0);
      const headerBytes = Number(buffer.readBigUInt64LE(0));
      if (size < 8 || headerBytes > Math.min(maxHeaderBytes, size - 8)) throw broken(path);
      const header = await handle.read(Buffer.alloc(headerBytes), 0, headerBytes, 8);
      return new SafetensorsFile(path, handle, parseHeader(path, header.buffer, size));
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async read({ start, end }: TensorEntry): Promise<Uint8Array> {
    const bytes = new Uint8Array(end - start);
    let done = 0;
    while (done < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, done, bytes.length - done, start + done);
      if (bytesRead === 0) throw broken(this.path);
      done += bytesRead;
    }
    return bytes;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** Writes a safetensors file; one tensor is in memory at a time. */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorToWrite[],
  signal?: AbortSignal,
): Promise<void> {
  let offset = 0;
  const entries = tensors.map(({ name, dtype, shape, byteLength }) => {
    const begin = offset;
    offset += byteLength;
    return [name, { dtype, shape, data_offsets: [begin, offset] }] as const;
  });
  const metadata = { __metadata__: { format: "pt" } };
  const text = JSON.stringify({ ...metadata, ...Object.fromEntries(entries) });
  // Data begins at a multiple of eight bytes, so that readers can map it.
  const header = Buffer.from(text.padEnd(Math.ceil(Buffer.byteLength(text) / 8) * 8), "utf8");
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const handle = await open(path, "wx");
  try {
    await handle.appendFile(Buffer.concat([length, header]));
    for (const tensor of tensors) {
      signal?.throwIfAborted();
      const bytes = await tensor.read();
      if (bytes.length !== tensor.byteLength) {
        throw new WeightsError(
          `${tensor.name}: ${bytes.length} bytes instead of ${tensor.byteLength}`,
        );
      }
      await handle.appendFile(bytes);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function parseHeader(path: string, bytes: Buffer, size: number): Map<string, TensorEntry> {
  const dataStart = 8 + bytes.length;
  const tensors = new Map<string, TensorEntry>();
  let json: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>;
  try {
    json = JSON.parse(bytes.toString("utf8")) as typeof json;
  } catch (cause) {
    throw broken(path, cause);
  }
  for (const [name, entry] of Object.entries(json)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets;
    if (!(begin >= 0 && begin <= end && dataStart + end <= size)) throw broken(path);
    const { dtype, shape } = entry;
    tensors.set(name, { name, dtype, shape, start: dataStart + begin, end: dataStart + end });
  }
  return tensors;
}

function broken(path: string, cause?: unknown): WeightsError {
  return new WeightsError(`${path} is not a whole safetensors file`, { cause });
}
