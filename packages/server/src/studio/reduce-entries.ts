import type { StudioSeries } from "tinker-ts/wire";
import type { Entry } from "../store/series-table.js";

/** The columns of an answer. */
export type Reduced = Omit<StudioSeries, "run" | "key" | "attempt" | "isAbandoned">;

/**
 * Entries reduced to few buckets: least, largest and mean value of each, and how many were not finite.
 *
 * - Buckets are as wide as a power of two and lie on its multiples, whatever is asked for: a run that grows
 *   does not flicker, and runs share their grid.
 * - Where there are no more points than buckets, the answer is the points themselves.
 */
export function reduceEntries(
  entries: readonly Entry[],
  places: readonly number[],
  isWhole: boolean,
  { from, to, buckets }: { readonly from: number; readonly to: number; readonly buckets: number },
): Reduced {
  const within: Entry[] = [];
  const x: number[] = [];
  for (const [index, place] of places.entries()) {
    if (!(place >= from && place <= to)) continue;
    within.push(entries[index]!);
    x.push(place);
  }
  if (isWhole && within.length <= buckets) return toPoints(within, x);
  const [low, high] = rangeOf(x);
  const width = bucketWidth(Math.max(from, low), Math.min(to, high), buckets);
  const sums = new Map<number, { -readonly [Column in keyof Entry]: number }>();
  for (const [index, entry] of within.entries()) {
    const bucket = Math.floor(x[index]! / width);
    const sum = sums.get(bucket);
    if (!sum) {
      sums.set(bucket, { ...entry });
      continue;
    }
    sum.finite += entry.finite;
    sum.least = Math.min(sum.least, entry.least);
    sum.most = Math.max(sum.most, entry.most);
    sum.total += entry.total;
    sum.nan += entry.nan;
    sum.plus += entry.plus;
    sum.minus += entry.minus;
  }
  const filled = [...sums].toSorted(([a], [b]) => a - b);
  const rows = filled.map(([, sum]) => sum);
  // A bucket may have nothing but points that are not finite.
  const column = (value: (row: Entry) => number): Float32Array =>
    Float32Array.from(rows, (row) => (row.finite > 0 ? forTheEye(value(row)) : Number.NaN));
  return {
    width,
    total: rows.reduce((sum, row) => sum + row.finite + row.nan + row.plus + row.minus, 0),
    length: rows.length,
    columns: [],
    x: Float64Array.from(filled, ([bucket]) => bucket * width),
    mean: column(({ total, finite }) => total / finite),
    min: column(({ least }) => least),
    max: column(({ most }) => most),
    count: Uint32Array.from(rows, ({ finite }) => finite),
    ...marksOf(rows),
  };
}

function toPoints(entries: readonly Entry[], x: readonly number[]): Reduced {
  const order = x.map((_, index) => index).toSorted((a, b) => x[a]! - x[b]!);
  const points = order.map((index) => entries[index]!);
  const mean = Float32Array.from(points, ({ finite, total }) =>
    finite > 0 ? forTheEye(total) : Number.NaN,
  );
  return {
    width: 0,
    total: points.length,
    length: points.length,
    columns: [],
    x: Float64Array.from(order, (index) => x[index]!),
    mean,
    min: mean,
    max: mean,
    count: null,
    ...marksOf(points),
  };
}

/** The width of buckets for a range: the least power of two that needs no more than this many. */
function bucketWidth(from: number, to: number, buckets: number): number {
  if (!(to > from)) return 1;
  let width = 2 ** Math.ceil(Math.log2((to - from) / buckets));
  // Buckets lie on multiples, so that one more may be needed than the range has room for.
  while (Math.floor(to / width) - Math.floor(from / width) + 1 > buckets) width *= 2;
  return width;
}

function rangeOf(x: readonly number[]): readonly [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const one of x) {
    if (one < low) low = one;
    if (one > high) high = one;
  }
  return [low, high];
}

/** The columns of an answer have half the digits, and hold no number beyond this. */
const largest = Math.fround(3.4028234e38);

function forTheEye(value: number): number {
  return Math.max(-largest, Math.min(largest, value));
}

/** Counts of points that are not finite; columns without any are left out. */
function marksOf(rows: readonly Entry[]) {
  const column = (value: (row: Entry) => number): Uint32Array | null =>
    rows.some((row) => value(row) > 0) ? Uint32Array.from(rows, value) : null;
  return {
    nan: column(({ nan }) => nan),
    plusInfinity: column(({ plus }) => plus),
    minusInfinity: column(({ minus }) => minus),
  };
}
