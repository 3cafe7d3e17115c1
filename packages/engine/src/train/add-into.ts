/** `sum += part`, element by element. */
export function addInto(sum: Float32Array, part: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (part[i] ?? 0);
}
