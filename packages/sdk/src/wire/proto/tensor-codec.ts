import { narrowIntegers } from "../../schema/typed-lists.js";
import { WireError } from "../../errors/wire-error.js";
import { TensorData, type TensorStorage } from "../../types/tensor-data.js";
import { MessageWriter, type WhenEmpty } from "./message-writer.js";
import type { MessageReader } from "./message-reader.js";

/** Number formats of packed values. */
const DType = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;

/** A tensor as it is on the wire; its name may follow it there, so that errors come later. */
export interface TensorMessage {
  encoding: Uint8Array | SparseCsrMessage | undefined;
  dtype: number;
  shape: bigint[];
}

interface SparseCsrMessage {
  values: Uint8Array;
  crowIndices: Uint8Array;
  colIndices: Uint8Array;
}

/** The value of a field of bytes that is missing. */
export const noBytes: Uint8Array = new Uint8Array();

/** A tensor without fields. */
export const emptyTensor: TensorMessage = { encoding: undefined, dtype: 0, shape: [] };

/** Reads the message of a tensor. */
export function readTensorMessage(r: MessageReader): TensorMessage {
  const message: TensorMessage = { encoding: undefined, dtype: 0, shape: [] };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.encoding = r.bytes() ?? message.encoding;
    else if (field === 2) message.encoding = r.message(readSparseCsr) ?? message.encoding;
    else if (field === 3) message.dtype = r.int32() ?? message.dtype;
    else if (field === 4) r.int64s(message.shape);
    else r.unknown(field);
  }
  return message;
}

function readSparseCsr(r: MessageReader): SparseCsrMessage {
  const message = { values: noBytes, crowIndices: noBytes, colIndices: noBytes };
  for (let field = r.next(); field >= 0; field = r.next()) {
    if (field === 1) message.values = r.bytes() ?? message.values;
    else if (field === 2) message.crowIndices = r.bytes() ?? message.crowIndices;
    else if (field === 3) message.colIndices = r.bytes() ?? message.colIndices;
    else r.unknown(field);
  }
  return message;
}

/** Bytes that one value of a dtype takes on the wire; undefined for dtypes that do not exist. */
export function itemBytes(dtype: number): number | undefined {
  return {
    [DType.float32]: 4,
    [DType.int64]: 8,
    [DType.int32]: 4,
    [DType.bfloat16]: 2,
  }[dtype];
}

/** Packed values as tensor storage; int32 counts as int64 and bfloat16 as float32. */
export function readValues(dtype: number, bytes: Uint8Array): TensorStorage {
  switch (dtype) {
    case DType.float32:
      return readFloat32(bytes);
    case DType.int64:
      return readInt64(bytes);
    case DType.int32:
      return readInt32(bytes);
    case DType.bfloat16:
      return readBfloat16(bytes);
    default:
      throw new PackedError(`unknown dtype ${dtype}`);
  }
}

/** The dtype of tensor storage on the wire. */
export function dtypeOf(values: TensorStorage): number {
  return values instanceof Float32Array ? DType.float32 : DType.int64;
}

/** Adds packed values to a message as a bytes field. */
export function addValues(
  writer: MessageWriter,
  field: number,
  values: TensorStorage,
  whenEmpty?: WhenEmpty,
): void {
  const bytes = values instanceof Float32Array ? bytesOf(values) : values;
  writer.bytes(field, bytes, whenEmpty);
}

/** Encodes one loss input. */
export function writeTensor(tensor: TensorData): MessageWriter {
  const writer = new MessageWriter();
  if (tensor.sparseCrowIndices && tensor.sparseColIndices) {
    const csr = new MessageWriter();
    addValues(csr, 1, tensor.data);
    csr.bytes(2, tensor.sparseCrowIndices);
    csr.bytes(3, tensor.sparseColIndices);
    writer.message(2, csr);
  } else {
    addValues(writer, 1, tensor.data, "send");
  }
  return writer.uint(3, dtypeOf(tensor.data), "send").packedUints(4, tensor.shape ?? []);
}

/** The tensor of a message. */
export function toTensor({ encoding, dtype, shape: sizes }: TensorMessage): TensorData {
  const shape = sizes.length === 0 ? null : sizes.map(toSize);
  if (encoding === undefined) {
    throw new PackedError("the tensor has neither dense nor sparse values");
  }
  if (encoding instanceof Uint8Array) {
    return new TensorData({ data: readValues(dtype, encoding), shape });
  }
  return new TensorData({
    data: readValues(dtype, encoding.values),
    shape,
    sparseCrowIndices: readIndices(encoding.crowIndices),
    sparseColIndices: readIndices(encoding.colIndices),
  });
}

/** A size as a number; sizes beyond 2^53 cannot exist. */
export function toSize(size: bigint): number {
  if (size < 0n || size > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new PackedError(`${size} is not a size`);
  }
  return Number(size);
}

/** The error of a value as a `WireError` that names its field. */
export function fieldError(error: unknown, typeName: string, path: string): unknown {
  if (error instanceof WireError || !(error instanceof Error)) return error;
  return new WireError("decode", typeName, path, error.message, { cause: error });
}

/** Runs `action`; its errors become a `WireError` that names the field. */
export function atField<T>(typeName: string, path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw fieldError(error, typeName, path);
  }
}

/*
 * Packed numbers are little-endian, so on every platform that Node runs fast on they are views on the
 * message itself; a copy is made only where the bytes are not aligned. Nothing is boxed on the way.
 */

if (new Uint8Array(new Uint32Array([1]).buffer)[0] !== 1) {
  throw new Error("tinker-ts needs a little-endian platform for its binary messages");
}

/** A problem with packed bytes; the caller adds the field. */
export class PackedError extends Error {}

/** Bytes of a typed array, without a copy. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** int32 values. */
export function readInt32(bytes: Uint8Array): Int32Array {
  const source = aligned(bytes, 4);
  return new Int32Array(source.buffer, source.byteOffset, source.byteLength / 4);
}

/** float32 values. */
export function readFloat32(bytes: Uint8Array): Float32Array {
  const source = aligned(bytes, 4);
  return new Float32Array(source.buffer, source.byteOffset, source.byteLength / 4);
}

/** int64 values, in 32 bits each when all of them fit. */
export function readInt64(bytes: Uint8Array): Int32Array | BigInt64Array {
  const source = aligned(bytes, 8);
  return narrowIntegers(new BigInt64Array(source.buffer, source.byteOffset, source.byteLength / 8));
}

/** bfloat16 values, widened to float32 by placing them in the high half of the word. */
export function readBfloat16(bytes: Uint8Array): Float32Array {
  const source = aligned(bytes, 2);
  const halves = new Uint16Array(source.buffer, source.byteOffset, source.byteLength / 2);
  const words = new Uint32Array(halves.length);
  for (let index = 0; index < halves.length; index++) words[index] = halves[index]! << 16;
  return new Float32Array(words.buffer);
}

/** int64 values that must fit into 32 bits, such as indices. */
export function readIndices(bytes: Uint8Array): Int32Array {
  const values = readInt64(bytes);
  if (values instanceof Int32Array) return values;
  throw new PackedError("an index is beyond 2^31");
}

function aligned(bytes: Uint8Array, width: number): Uint8Array {
  if (bytes.byteLength % width !== 0) {
    throw new PackedError(
      `${bytes.byteLength} bytes are not a whole number of ${width}-byte values`,
    );
  }
  if (bytes.byteOffset % width === 0) return bytes;
  // Not bytes.slice(): a Buffer's slice would be a view again.
  return Uint8Array.prototype.slice.call(bytes);
}
