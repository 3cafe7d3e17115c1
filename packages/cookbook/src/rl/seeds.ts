/** A seed that follows from others and from nothing else; positive and below 2³¹. */
export function mixSeeds(...seeds: readonly number[]): number {
  let hash = 0x9e3779b9;
  for (const seed of seeds) {
    hash = Math.imul(hash ^ (seed | 0), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash >>> 1;
}
