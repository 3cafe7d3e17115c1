import { WireError } from "../../errors/wire-error.js";
import { TensorData, type TensorStorage } from "../../types/tensor-data.js";
import { MessageWriter, type WhenEmpty } from "./message-writer.js";
import {
  bytesOf,
  PackedError,
  readBfloat16,
  readFloat32,
  readIndices,
  readInt32,
  readInt64,
} from "./packed.js";
import { DType, type TensorMessage } from "./messages.js";

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
  if (values instanceof Float32Array) writer.bytes(field, bytesOf(values), whenEmpty);
  else writer.int64Bytes(field, values, whenEmpty);
}

/** Encodes one loss input. */
export function writeTensor(tensor: TensorData): MessageWriter {
  const writer = new MessageWriter();
  if (tensor.sparseCrowIndices && tensor.sparseColIndices) {
    const csr = new MessageWriter();
    addValues(csr, 1, tensor.data);
    csr.int64Bytes(2, tensor.sparseCrowIndices);
    csr.int64Bytes(3, tensor.sparseColIndices);
    writer.message(2, csr);
  } else {
    addValues(writer, 1, tensor.data, "send");
  }
  return writer.presentUint(3, dtypeOf(tensor.data)).packedUints(4, tensor.shape ?? []);
}

/** Decodes one loss input. */
export function readTensor(message: TensorMessage): TensorData {
  const shape = message.shape.length === 0 ? null : message.shape.map(toSize);
  switch (message.encoding.case) {
    case "dense":
      return new TensorData({ data: readValues(message.dtype, message.encoding.value), shape });
    case "sparseCsr": {
      const csr = message.encoding.value;
      return new TensorData({
        data: readValues(message.dtype, csr.values),
        shape,
        sparseCrowIndices: readIndices(csr.crowIndices),
        sparseColIndices: readIndices(csr.colIndices),
      });
    }
    default:
      throw new PackedError("the tensor has neither dense nor sparse values");
  }
}

/** A size as a number; sizes beyond 2^53 cannot exist. */
export function toSize(size: bigint): number {
  if (size < 0n || size > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new PackedError(`${size} is not a size`);
  }
  return Number(size);
}

/** Runs `action` and turns its complaints into a `WireError` that names the field. */
export function atField<T>(typeName: string, path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof WireError || !(error instanceof Error)) throw error;
    throw new WireError("decode", typeName, path, error.message, { cause: error });
  }
}
