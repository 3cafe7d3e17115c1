/**
 * Whole numbers below 2^31 as the 64-bit integers that ONNX wants. Writing both halves of each is an
 * order of magnitude faster than converting through BigInt.
 */
export function int64From(values: ArrayLike<number>): BigInt64Array {
  const result = new BigInt64Array(values.length);
  const halves = new Int32Array(result.buffer);
  for (let i = 0; i < values.length; i++) halves[i * 2] = values[i] ?? 0;
  return result;
}
