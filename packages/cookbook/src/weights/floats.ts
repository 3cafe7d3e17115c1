/** Types of weights that can be computed with. */
export type FloatType = "F32" | "BF16" | "F16";

/** Whether weights of a type can be computed with as they are. */
export function isFloatType(type: string): type is FloatType {
  return type === "F32" || type === "BF16" || type === "F16";
}

/** Stored numbers as 32-bit floats. */
export function decodeFloats(type: FloatType, bytes: Uint8Array): Float32Array {
  const copy = bytes.slice();
  if (type === "F32") return new Float32Array(copy.buffer);
  const stored = new Uint16Array(copy.buffer);
  if (type === "F16") return Float32Array.from(stored, halfToFloat);
  const bits = new Uint32Array(stored.length);
  for (const [index, upper] of stored.entries()) bits[index] = upper << 16;
  return new Float32Array(bits.buffer);
}

/** 32-bit floats rounded to the nearest stored numbers, ties to even. */
export function encodeFloats(type: FloatType, values: Float32Array): Uint8Array {
  if (type === "F32") return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const stored = new Uint16Array(values.length);
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (const [index, word] of bits.entries()) {
    stored[index] = type === "BF16" ? roundToBfloat(word) : roundToHalf(values[index]!);
  }
  return new Uint8Array(stored.buffer);
}

function roundToBfloat(bits: number): number {
  const isNaN = (bits & 0x7fffffff) > 0x7f800000;
  return isNaN ? (bits >>> 16) | 0x40 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

function halfToFloat(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : Number.NaN;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

function roundToHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(size)) return 0x7e00;
  if (size >= 65_520) return sign | 0x7c00;
  // In units of the last place of a half of this size; the sum carries into the exponent by itself.
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  const units = roundToEven(size / 2 ** (exponent - 10));
  return sign | (size === 0 ? 0 : units + (exponent + 14) * 1024);
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
