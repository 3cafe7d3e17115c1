/** The item at an index that must exist. */
export function at<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index} among ${items.length}`);
  return item;
}

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

/** `sum += part`, element by element. */
export function addInto(sum: Float32Array, part: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (part[i] ?? 0);
}
