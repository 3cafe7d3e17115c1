/**
 * What each of many may keep at most when all together may keep no more than `most`. A member with less than
 * that keeps everything; infinite when there is room for all.
 */
export function fairLevel(sizes: Iterable<number>, most: number): number {
  const ascending = [...sizes].toSorted((a, b) => a - b);
  let left = most;
  for (const [index, size] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (size > share) return share;
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

/** By how much each owner is above the fair level; those below it are left out. */
export function excesses(
  sizes: ReadonlyMap<string, number>,
  most: number,
): (readonly [owner: string, excess: number])[] {
  const level = fairLevel(sizes.values(), most);
  return [...sizes]
    .filter(([, size]) => size > level)
    .map(([owner, size]) => [owner, size - level] as const);
}
