import { open, type FileHandle } from "node:fs/promises";
import { writeFileAtomically } from "../files/atomic.js";
import { EngineError } from "./engine-error.js";
import { encodeFloats } from "./float-formats.js";
import {
  dtypeOrder,
  formatShape,
  type SafetensorsDtype,
  tensorSizeBytes,
} from "./safetensors-header.js";
import { isStoredDtype } from "./safetensors.js";

/** Values of a tensor: floats to be rounded to its type, or bytes that are in that type already. */
export type TensorData = Float32Array | Uint8Array;

/** A tensor to be written; `data` as a function is called when the tensor is written, so that only one is in memory. */
export interface TensorToWrite {
  readonly name: string;
  /** @default "F32" */
  readonly dtype?: SafetensorsDtype;
  readonly shape: readonly number[];
  readonly data: TensorData | (() => TensorData | Promise<TensorData>);
}

/** Options of writing a safetensors file. */
export interface WriteSafetensorsOptions {
  /** Metadata in the header. @default {} */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Called after each tensor. */
  readonly onTensor?: (name: string, sizeBytes: number) => void;
}

/**
 * Writes a safetensors file that appears only when it is complete.
 *
 * The bytes depend on the contents alone: tensors are laid out as the format's reference
 * implementation does (wider types first, then by name), metadata by key.
 */
export async function writeSafetensors(
  path: string,
  tensors: Iterable<TensorToWrite>,
  options: WriteSafetensorsOptions = {},
): Promise<void> {
  const ordered = [...tensors].toSorted(byDtypeThenName);
  const header = encodeHeader(path, ordered, options.metadata ?? {});
  await writeFileAtomically(path, async (temporary) => {
    const handle = await open(temporary, "wx");
    try {
      const gathered = new GatheredWrites(handle);
      await gathered.write(header);
      for (const tensor of ordered) {
        options.signal?.throwIfAborted();
        const bytes = await tensorBytes(path, tensor);
        await gathered.write(bytes);
        options.onTensor?.(tensor.name, bytes.length);
      }
      await gathered.flush();
    } finally {
      await handle.close();
    }
  });
}

function byDtypeThenName(a: TensorToWrite, b: TensorToWrite): number {
  const byDtype = dtypeOrder.indexOf(dtypeOf(a)) - dtypeOrder.indexOf(dtypeOf(b));
  return byDtype || Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));
}

function dtypeOf(tensor: TensorToWrite): SafetensorsDtype {
  return tensor.dtype ?? "F32";
}

function encodeHeader(
  path: string,
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>>,
): Buffer {
  const header = new Map<string, unknown>();
  const sortedMetadata = Object.entries(metadata).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (sortedMetadata.length > 0) header.set("__metadata__", Object.fromEntries(sortedMetadata));
  let offset = 0;
  for (const tensor of tensors) {
    if (header.has(tensor.name) || tensor.name === "__metadata__") {
      throw invalidTensor(path, `the name "${tensor.name}" is taken`);
    }
    const end = offset + tensorSizeBytes(dtypeOf(tensor), tensor.shape);
    header.set(tensor.name, {
      dtype: dtypeOf(tensor),
      shape: tensor.shape,
      data_offsets: [offset, end],
    });
    offset = end;
  }
  const entries = [...header].map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  const json = Buffer.from(`{${entries.join(",")}}`);
  // Readers map the data into memory: it starts at a multiple of eight.
  const padded = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, " ");
  padded.writeBigUInt64LE(BigInt(padded.length - 8));
  json.copy(padded, 8);
  return padded;
}

async function tensorBytes(path: string, tensor: TensorToWrite): Promise<Uint8Array> {
  const data = typeof tensor.data === "function" ? await tensor.data() : tensor.data;
  const dtype = dtypeOf(tensor);
  const bytes = data instanceof Float32Array ? floatBytes(path, tensor.name, dtype, data) : data;
  const sizeBytes = tensorSizeBytes(dtype, tensor.shape);
  if (bytes.length === sizeBytes) return bytes;
  const shape = formatShape(tensor.shape);
  throw invalidTensor(
    path,
    `tensor "${tensor.name}" of shape ${shape} and type ${dtype} has ${sizeBytes} bytes, not ${bytes.length}`,
  );
}

function floatBytes(
  path: string,
  name: string,
  dtype: SafetensorsDtype,
  floats: Float32Array,
): Uint8Array {
  if (isStoredDtype(dtype)) return encodeFloats(dtype, floats);
  throw invalidTensor(
    path,
    `tensor "${name}" of type ${dtype} must be given as bytes, not as floats`,
  );
}

function invalidTensor(path: string, problem: string): EngineError {
  return new EngineError("invalid_tensor", `${path}: ${problem}.`);
}

/** Smaller pieces are written together: every write goes through another thread, and adapters have many small tensors. */
const gatheredBytes = 1 << 20;

/** Writes bytes to a file in their order, small ones many at a time. */
class GatheredWrites {
  readonly #handle: FileHandle;
  readonly #waiting = Buffer.allocUnsafe(gatheredBytes);
  #length = 0;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.#length + bytes.length > gatheredBytes) await this.flush();
    if (bytes.length > gatheredBytes) return writeAll(this.#handle, bytes);
    this.#waiting.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  async flush(): Promise<void> {
    await writeAll(this.#handle, this.#waiting.subarray(0, this.#length));
    this.#length = 0;
  }
}

/** A single write call may not exceed 2 GiB. */
const maxWriteBytes = 1 << 26;

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const length = Math.min(maxWriteBytes, bytes.length - done);
    const { bytesWritten } = await handle.write(bytes, done, length);
    done += bytesWritten;
  }
}
