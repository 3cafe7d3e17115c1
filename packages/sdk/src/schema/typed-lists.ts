import type { Cursor } from "./cursor.js";
import { readInteger, readNumber } from "./scalars.js";

const minInt32 = -(2 ** 31);
const maxInt32 = 2 ** 31 - 1;

/** Token ids as 32-bit integers. */
export function toInt32Array(list: unknown, cursor: Cursor): Int32Array {
  if (list instanceof Int32Array) return list;
  if (!isNumberList(list)) return cursor.expected("a list of token ids", list);
  const result = new Int32Array(list.length);
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    if (typeof item === "number" && (item | 0) === item) {
      result[index] = item;
      continue;
    }
    result[index] = cursor.within(index, () => {
      const token = readInteger(item, false, cursor);
      return Number(token) < minInt32 || Number(token) > maxInt32
        ? cursor.fail(`token id ${token} does not fit into 32 bits`)
        : Number(token);
    });
  }
  return result;
}

/** Doubles. */
export function toFloat64Array(given: unknown, cursor: Cursor): Float64Array {
  const list = ownArray(given);
  if (list instanceof Float64Array) return list;
  if (list instanceof Float32Array) return new Float64Array(list);
  if (!isNumberList(list)) return cursor.expected("a list of numbers", list);
  const result = new Float64Array(list.length);
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    result[index] =
      typeof item === "number" && Number.isFinite(item)
        ? item
        : cursor.within(index, () => readNumber(item, cursor));
  }
  return result;
}

/** 64-bit integers, stored in 32 bits each when all of them fit. */
export function toIntegerArray(list: unknown, cursor: Cursor): Int32Array | BigInt64Array {
  if (list instanceof Int32Array) return list;
  if (list instanceof BigInt64Array) return narrowIntegers(list);
  if (!isNumberList(list)) return cursor.expected("a list of integers", list);
  const narrow = new Int32Array(list.length);
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    if (typeof item !== "number" || (item | 0) !== item) {
      return narrowIntegers(toBigIntegers(list, cursor));
    }
    narrow[index] = item;
  }
  return narrow;
}

/** The same integers in 32 bits each when all of them fit, else unchanged. */
export function narrowIntegers(wide: BigInt64Array): Int32Array | BigInt64Array {
  const words = new Int32Array(wide.buffer, wide.byteOffset, wide.length * 2);
  for (let index = 0; index < words.length; index += 2) {
    if (words[index + 1] !== words[index]! >> 31) return wide;
  }
  const narrow = new Int32Array(wide.length);
  for (let index = 0; index < narrow.length; index++) narrow[index] = words[index * 2]!;
  return narrow;
}

function toBigIntegers(list: ArrayLike<unknown>, cursor: Cursor): BigInt64Array {
  const wide = new BigInt64Array(list.length);
  for (let index = 0; index < list.length; index++) {
    wide[index] = cursor.within(index, () => {
      const value = BigInt(readInteger(list[index], true, cursor));
      return BigInt.asIntN(64, value) === value
        ? value
        : cursor.fail(`the integer ${value} does not fit into int64`);
    });
  }
  return wide;
}

function isNumberList(list: unknown): list is ArrayLike<unknown> {
  return Array.isArray(list) || (ArrayBuffer.isView(list) && !(list instanceof DataView));
}

type OwnKind = new (buffer: ArrayBufferLike, offset: number, length: number) => ArrayBufferView;

const kinds: Readonly<Record<string, OwnKind | undefined>> = {
  Uint8Array,
  Int8Array,
  Int16Array,
  Int32Array,
  BigInt64Array,
  Float32Array,
  Float64Array,
};

/**
 * A typed array as one of this realm, in the same memory; everything else as it is. Jest and some pools of Vitest run
 * programs in a realm with other classes than those of Node, which makes what comes from threads and connections.
 */
export function ownArray<T>(value: T): T {
  if (!isTypedArray(value)) return value;
  const Own = kinds[value[Symbol.toStringTag]];
  if (Own === undefined || (value as object) instanceof Own) return value;
  return new Own(value.buffer, value.byteOffset, value.length) as ArrayBufferView & T;
}

function isTypedArray(value: unknown): value is Float32Array {
  return ArrayBuffer.isView(value) && "length" in value;
}
