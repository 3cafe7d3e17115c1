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
 * programs in a realm whose classes are not those of Node, which makes what comes from threads and connections.
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
