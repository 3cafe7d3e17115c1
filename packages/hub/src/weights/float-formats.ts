import type { StoredDtype } from "./weight-source.js";

// All conversions work on bit patterns of little-endian words: every platform that ONNX Runtime
// ships binaries for is little-endian, as the safetensors format is.

/** Bytes of one element as stored. */
export const storedElementBytes: Readonly<Record<StoredDtype, number>> = {
  F32: 4,
  F16: 2,
  BF16: 2,
};

/** Widens `count` stored elements at the start of `source` to 32-bit floats in `target`. */
export function decodeFloats(
  dtype: StoredDtype,
  source: ArrayBuffer,
  target: Float32Array,
  count: number,
): void {
  if (dtype === "F32") target.set(new Float32Array(source, 0, count));
  else if (dtype === "BF16") decodeBf16(source, bitsOf(target), count);
  else decodeF16(source, bitsOf(target), count);
}

/** Rounds 32-bit floats to the nearest stored value (ties to even) and returns the stored bytes. */
export function encodeFloats(dtype: StoredDtype, source: Float32Array): Uint8Array {
  if (dtype === "F32") return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const stored = new Uint16Array(source.length);
  if (dtype === "BF16") encodeBf16(bitsOf(source), stored);
  else encodeF16(bitsOf(source), stored);
  return new Uint8Array(stored.buffer);
}

function bitsOf(floats: Float32Array): Int32Array {
  return new Int32Array(floats.buffer, floats.byteOffset, floats.length);
}

// A bfloat16 is the upper half of a float, so one 32-bit load holds two of them. Loading pairs is
// 1.5 times as fast as loading single 16-bit words.
function decodeBf16(source: ArrayBuffer, target: Int32Array, count: number): void {
  const pairs = new Int32Array(source, 0, count >> 1);
  for (let i = 0, j = 0; i < pairs.length; i++, j += 2) {
    const pair = pairs[i]!;
    target[j] = pair << 16;
    target[j + 1] = pair & 0xffff0000;
  }
  if (count % 2 === 1) {
    target[count - 1] = new Uint16Array(source, (count - 1) * 2, 1)[0]! << 16;
  }
}

function decodeF16(source: ArrayBuffer, target: Int32Array, count: number): void {
  const table = (f16Table ??= makeF16Table());
  const halves = new Uint16Array(source, 0, count);
  for (let i = 0; i < count; i++) target[i] = table[halves[i]!]!;
}

let f16Table: Int32Array | undefined;

// 256 KB that fits the second-level cache: one load instead of a branch per subnormal.
function makeF16Table(): Int32Array {
  const table = new Int32Array(1 << 16);
  const float = new Float32Array(1);
  const bits = new Int32Array(float.buffer);
  for (let half = 0; half < table.length; half++) {
    const sign = (half & 0x8000) << 16;
    const exponent = (half >> 10) & 0x1f;
    const mantissa = half & 0x3ff;
    if (exponent === 0x1f) table[half] = sign | 0x7f800000 | (mantissa << 13);
    else if (exponent > 0) table[half] = sign | ((exponent + 112) << 23) | (mantissa << 13);
    else {
      float[0] = mantissa * 2 ** -24;
      table[half] = sign | bits[0]!;
    }
  }
  return table;
}

function encodeBf16(source: Int32Array, target: Uint16Array): void {
  for (let i = 0; i < source.length; i++) {
    const bits = source[i]!;
    const upper = bits >>> 16;
    // A NaN with its payload in the lower half would round to infinity; it is kept a NaN.
    target[i] =
      (bits & 0x7fffffff) > 0x7f800000 ? upper | 0x40 : (bits + 0x7fff + (upper & 1)) >>> 16;
  }
}

function encodeF16(source: Int32Array, target: Uint16Array): void {
  for (let i = 0; i < source.length; i++) {
    const bits = source[i]!;
    target[i] = ((bits >>> 16) & 0x8000) | f16Magnitude(bits & 0x7fffffff);
  }
}

function f16Magnitude(bits: number): number {
  if (bits > 0x7f800000) return 0x7e00 | ((bits >>> 13) & 0x3ff); // NaN
  if (bits >= 0x477ff000) return 0x7c00; // 65520 and above round to infinity
  if (bits >= 0x38800000) {
    const lastKeptBit = (bits >>> 13) & 1;
    return (bits - 0x38000000 + 0xfff + lastKeptBit) >>> 13;
  }
  if (bits < 0x33000000) return 0; // below half of the smallest subnormal
  const droppedBits = 126 - (bits >>> 23);
  const mantissa = (bits & 0x7fffff) | 0x800000;
  const kept = mantissa >>> droppedBits;
  const rest = mantissa & ((1 << droppedBits) - 1);
  const half = 1 << (droppedBits - 1);
  return kept + (rest > half || (rest === half && (kept & 1) === 1) ? 1 : 0);
}
