/** The value of the normal distribution beyond which 2.5 % are on each side. */
const z = 1.959963984540054;

/** Where a share lies with a certainty of 95 %, found by Wilson's formula, which also holds near 0 and 1. */
export function shareInterval(right: number, total: number): readonly [number, number] {
  if (total === 0) return [0, 1];
  const share = right / total;
  const spread = z * Math.sqrt((share * (1 - share)) / total + (z * z) / (4 * total * total));
  const middle = share + (z * z) / (2 * total);
  const scale = 1 + (z * z) / total;
  // Rounding must not keep the ends from being what they are.
  const low = right === 0 ? 0 : (middle - spread) / scale;
  const high = right === total ? 1 : (middle + spread) / scale;
  return [low, high];
}
