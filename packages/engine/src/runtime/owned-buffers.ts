/** Buffers of typed arrays in a value that nothing else shares, so that they can change threads. */
export function ownedBuffers(value: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  collect(value, buffers);
  return [...buffers];
}

function collect(value: unknown, buffers: Set<ArrayBuffer>): void {
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteLength } = value;
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffers.add(buffer);
  } else if (value instanceof Map || Array.isArray(value)) {
    for (const item of value.values()) collect(item, buffers);
  } else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) collect(item, buffers);
  }
}
