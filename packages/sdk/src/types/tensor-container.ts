import { ArgumentError } from "../errors/argument-error.js";

const constantMarker = 0xfe;
const maxDtype = 7;
const maxVarintBytes = 10;

/**
 * Reads the shape at the head of a tensor container, the byte format of audio (dmel) chunks:
 * an optional constant marker, a dtype byte, the number of dimensions and the dimensions as LEB128.
 */
export function readContainerShape(container: Uint8Array): number[] {
  let position = container[0] === constantMarker ? 1 : 0;
  const dtype = container[position++];
  if (dtype === undefined) throw new ArgumentError("dmel", "the tensor container is empty");
  if (dtype > maxDtype) throw new ArgumentError("dmel", `unknown container dtype ${dtype}`);

  const readVarint = (): number => {
    let value = 0n;
    for (let count = 0; count < maxVarintBytes; count++) {
      const byte = container[position++];
      if (byte === undefined) throw new ArgumentError("dmel", "the container header is truncated");
      value |= BigInt(byte & 0x7f) << BigInt(7 * count);
      if ((byte & 0x80) === 0) return toDimension(value);
    }
    throw new ArgumentError("dmel", "a number in the container header is longer than 10 bytes");
  };

  const rank = readVarint();
  if (rank > container.length) {
    throw new ArgumentError("dmel", "the container header is truncated");
  }
  return Array.from({ length: rank }, readVarint);
}

function toDimension(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new ArgumentError("dmel", `the container dimension ${value} is too large`);
  }
  return Number(value);
}
