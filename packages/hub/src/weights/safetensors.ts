import type { Stats } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { isMissing } from "../files/json.js";
import { EngineError } from "./engine-error.js";
import { decodeFloats, storedElementBytes } from "./float-formats.js";
import {
  invalid,
  maxHeaderBytes,
  parseSafetensorsHeader,
  type SafetensorsDtype,
  type SafetensorsEntry,
  type SafetensorsHeader,
} from "./safetensors-header.js";
import type { StoredDtype } from "./weight-source.js";

/** Large enough that a read costs no more than a copy, small enough that conversion stays in cache. */
const chunkBytes = 4 << 20;

/** The range of a tensor's bytes to read. */
export interface ReadBytesOptions {
  /** @default 0 */
  readonly start?: number;
  /** @default the tensor's end */
  readonly end?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One open safetensors file.
 *
 * - The header is read and checked when the file is opened; tensors are read on demand.
 * - 32-bit floats are read straight into the target. Narrower ones pass through two chunk buffers:
 *   one is filled by a thread of the pool while the other is widened here.
 * - Chunk buffers are kept for the next read, so memory does not grow with the file.
 */
export class SafetensorsFile implements SafetensorsHeader {
  readonly path: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: ReadonlyMap<string, SafetensorsEntry>;
  readonly #handle: FileHandle;
  readonly #openedStat: Stats;
  readonly #spareChunks: ArrayBuffer[] = [];

  /** Opens a file and checks its header. */
  static async open(path: string, signal?: AbortSignal): Promise<SafetensorsFile> {
    signal?.throwIfAborted();
    const handle = await openForReading(path);
    try {
      const stat = await handle.stat();
      return new SafetensorsFile(path, handle, stat, await readHeader(path, handle, stat));
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  private constructor(path: string, handle: FileHandle, stat: Stats, header: SafetensorsHeader) {
    this.path = path;
    this.#handle = handle;
    this.#openedStat = stat;
    this.metadata = header.metadata;
    this.tensors = header.tensors;
  }

  /** Reads a tensor as 32-bit floats into `target`, which must have its size, or into a new array. */
  async readFloats(
    name: string,
    target?: Float32Array,
    signal?: AbortSignal,
  ): Promise<Float32Array> {
    const entry = this.#entry(name);
    await this.#refuseChange();
    const { dtype } = entry;
    if (!isStoredDtype(dtype)) {
      throw new EngineError(
        "unsupported_dtype",
        `Tensor "${name}" of ${this.path} is stored as ${dtype}; floats are read from F32, F16 or BF16.`,
      );
    }
    const elements = (entry.end - entry.start) / storedElementBytes[dtype];
    const floats = target ?? new Float32Array(elements);
    if (floats.length !== elements) {
      throw new EngineError(
        "wrong_size",
        `Tensor "${name}" of ${this.path} has ${elements} elements, but the target has ${floats.length}.`,
      );
    }
    if (dtype === "F32") await this.#fill(entry, asBytes(floats), signal);
    else await this.#convert(entry, dtype, floats, signal);
    return floats;
  }

  /** Reads a tensor's bytes as stored, or the part of them from `start` to `end`. */
  async readBytes(
    name: string,
    { start = 0, end = Infinity, signal }: ReadBytesOptions = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const entry = this.#entry(name);
    const from = Math.min(entry.start + start, entry.end);
    const part = { ...entry, start: from, end: Math.min(entry.start + end, entry.end) };
    const bytes = new Uint8Array(part.end - part.start);
    await this.#fill(part, bytes, signal);
    return bytes;
  }

  /** Closes the file. */
  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Tensors may be read long after the file was opened; the file must not have changed since it was checked. */
  async #refuseChange(): Promise<void> {
    const { mtimeMs, size } = await this.#handle.stat();
    if (mtimeMs === this.#openedStat.mtimeMs && size === this.#openedStat.size) return;
    throw new EngineError(
      "file_changed",
      `${this.path} has been written since it was opened; open it again, or load its model again.`,
    );
  }

  #entry(name: string): SafetensorsEntry {
    const entry = this.tensors.get(name);
    if (!entry) throw new EngineError("unknown_tensor", `${this.path} has no tensor "${name}".`);
    return entry;
  }

  async #fill(entry: SafetensorsEntry, target: Uint8Array, signal?: AbortSignal): Promise<void> {
    for (let offset = 0; offset < target.length; offset += chunkBytes) {
      signal?.throwIfAborted();
      await this.#readChunk(entry, offset, target.subarray(offset, offset + chunkBytes));
    }
  }

  async #convert(
    entry: SafetensorsEntry,
    dtype: StoredDtype,
    target: Float32Array,
    signal?: AbortSignal,
  ): Promise<void> {
    const totalBytes = entry.end - entry.start;
    const elementBytes = storedElementBytes[dtype];
    const chunks = [this.#takeChunk(totalBytes), this.#takeChunk(totalBytes - chunkBytes)] as const;
    const readAhead = (index: number) => {
      const offset = index * chunkBytes;
      const length = Math.min(chunkBytes, totalBytes - offset);
      if (length <= 0) return Promise.resolve();
      return this.#readChunk(entry, offset, new Uint8Array(chunks[index % 2 ? 1 : 0], 0, length));
    };
    let pending = readAhead(0);
    try {
      for (let index = 0; index * chunkBytes < totalBytes; index++) {
        await pending;
        signal?.throwIfAborted();
        pending = readAhead(index + 1);
        const first = (index * chunkBytes) / elementBytes;
        const count = Math.min(chunkBytes / elementBytes, target.length - first);
        const part = target.subarray(first, first + count);
        decodeFloats(dtype, chunks[index % 2 ? 1 : 0], part, count);
      }
    } finally {
      // The pool may still be writing into a chunk; it must not be handed out before that ends.
      await pending.catch(() => undefined);
      this.#spareChunks.push(...chunks.filter((chunk) => chunk.byteLength === chunkBytes));
    }
  }

  #takeChunk(neededBytes: number): ArrayBuffer {
    if (neededBytes < chunkBytes) return new ArrayBuffer(Math.max(neededBytes, 0));
    return this.#spareChunks.pop() ?? new ArrayBuffer(chunkBytes);
  }

  async #readChunk(entry: SafetensorsEntry, offset: number, target: Uint8Array): Promise<void> {
    await readExactly(this.path, this.#handle, target, entry.start + offset);
  }
}

/** Whether the engine can compute with tensors stored in this type. */
export function isStoredDtype(dtype: SafetensorsDtype): dtype is StoredDtype {
  return Object.hasOwn(storedElementBytes, dtype);
}

function asBytes(floats: Float32Array): Uint8Array {
  return new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength);
}

async function openForReading(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    throw new EngineError("file_missing", `${path} does not exist.`, { cause });
  }
}

async function readHeader(
  path: string,
  handle: FileHandle,
  { size: fileBytes }: Stats,
): Promise<SafetensorsHeader> {
  if (fileBytes < 8) throw invalid(path, `it has ${fileBytes} bytes, too few for a header`);
  const length = Buffer.alloc(8);
  await readExactly(path, handle, length, 0);
  const headerBytes = Number(length.readBigUInt64LE());
  if (headerBytes > maxHeaderBytes) {
    throw invalid(path, `its header claims ${headerBytes} bytes; the limit is ${maxHeaderBytes}`);
  }
  const dataStart = 8 + headerBytes;
  if (dataStart > fileBytes) {
    throw invalid(path, `it is truncated: the header ends at byte ${dataStart} of ${fileBytes}`);
  }
  const header = Buffer.alloc(headerBytes);
  await readExactly(path, handle, header, 8);
  return parseSafetensorsHeader(path, header.toString("utf8"), dataStart, fileBytes);
}

async function readExactly(
  path: string,
  handle: FileHandle,
  target: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < target.length;) {
    const { bytesRead } = await handle.read(target, done, target.length - done, position + done);
    // Sizes were checked against the file's when it was opened: it has been truncated since.
    if (bytesRead === 0) throw invalid(path, `it ends at byte ${position + done}`);
    done += bytesRead;
  }
}
