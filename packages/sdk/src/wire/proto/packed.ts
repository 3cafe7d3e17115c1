import { narrowIntegers } from "../../schema/typed-lists.js";
import type { TensorStorage } from "../../types/tensor-data.js";

/*
 * Packed numbers are little-endian, so on every platform that Node runs fast on they are views on the
 * message itself; a copy is made only where the bytes are not aligned. Nothing is boxed on the way.
 */

if (new Uint8Array(new Uint32Array([1]).buffer)[0] !== 1) {
  throw new Error("tinker-ts needs a little-endian platform for its binary messages");
}

/** A problem with packed bytes; the caller knows which field they belong to. */
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

/** How many bytes `writeInt64` writes. */
export function int64Size(values: TensorStorage): number {
  return values.length * 8;
}

const scratch = new Int32Array(16 * 1024);
const scratchBytes = bytesOf(scratch);

/** Writes integers as int64 at `offset`; 32-bit storage is widened in small aligned pieces. */
export function writeInt64(
  values: Int32Array | BigInt64Array,
  target: Uint8Array,
  offset: number,
): void {
  if (values instanceof BigInt64Array) {
    target.set(bytesOf(values), offset);
    return;
  }
  const perPiece = scratch.length / 2;
  for (let start = 0; start < values.length; start += perPiece) {
    const count = Math.min(perPiece, values.length - start);
    for (let index = 0; index < count; index++) {
      const value = values[start + index]!;
      scratch[index * 2] = value;
      scratch[index * 2 + 1] = value >> 31;
    }
    target.set(scratchBytes.subarray(0, count * 8), offset + start * 8);
  }
}

function aligned(bytes: Uint8Array, itemBytes: number): Uint8Array {
  if (bytes.byteLength % itemBytes !== 0) {
    throw new PackedError(
      `${bytes.byteLength} bytes are not a whole number of ${itemBytes}-byte values`,
    );
  }
  if (bytes.byteOffset % itemBytes === 0) return bytes;
  // Not bytes.slice(): a Buffer's slice would be a view again.
  return Uint8Array.prototype.slice.call(bytes);
}
