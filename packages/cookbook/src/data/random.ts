/**
 * Numbers in [0, 1) that depend on the seeds only, so that the draws of one epoch or batch do not depend on earlier
 * draws.
 */
export function seededRandom(...seeds: readonly number[]): () => number {
  let state = seeds.reduce((hash, seed) => mix((hash ^ seed) + 0x9e3779b9), 0x2545f491);
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The numbers from 0 to `length` - 1 in random order. */
export function permutation(length: number, random: () => number): Uint32Array {
  const order = Uint32Array.from({ length }, (_, index) => index);
  for (let index = length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [order[index], order[other]] = [order[other]!, order[index]!];
  }
  return order;
}

/** A full batch of a list that is shuffled for every epoch. */
export function shuffledBatch<T>(
  items: readonly T[],
  {
    batchSize,
    seed,
    epoch,
    index,
  }: Readonly<Record<"batchSize" | "seed" | "epoch" | "index", number>>,
): T[] {
  const order = permutation(items.length, seededRandom(seed, epoch));
  const places = order.subarray(index * batchSize, (index + 1) * batchSize);
  return Array.from(places, (place) => items[place]!);
}

function mix(value: number): number {
  let bits = value | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x45d9f3b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x45d9f3b);
  return (bits ^ (bits >>> 16)) >>> 0;
}
