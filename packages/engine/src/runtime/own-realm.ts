const kinds: Readonly<Record<string, OwnKind | undefined>> = {
  Uint8Array,
  Int8Array,
  Int32Array,
  BigInt64Array,
  Float32Array,
  Float64Array,
};

type OwnKind = new (buffer: ArrayBufferLike, offset: number, length: number) => ArrayBufferView;

/**
 * What came from a thread, with lists, maps and arrays of this realm, in the same memory. Messages are made in the realm
 * of the process; Jest and some pools of Vitest run programs in another one, where these are of no known class.
 */
export function inOwnRealm<T>(message: T): T {
  return message instanceof Object ? message : (adopted(message) as T);
}

function adopted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) return adoptedView(value);
  if (Array.isArray(value)) return Array.from(value, adopted);
  if (isMap(value)) {
    return new Map(Array.from(value, ([key, item]) => [adopted(key), adopted(item)]));
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, adopted(item)]));
}

function adoptedView(view: ArrayBufferView): ArrayBufferView {
  const Own = kinds[tagOf(view)];
  if (Own === undefined || !("length" in view)) return view;
  return new Own(view.buffer, view.byteOffset, Number(view.length));
}

function isMap(value: object): value is ReadonlyMap<unknown, unknown> {
  return tagOf(value) === "Map";
}

function tagOf(value: object): string {
  return Symbol.toStringTag in value ? String(value[Symbol.toStringTag]) : "";
}
