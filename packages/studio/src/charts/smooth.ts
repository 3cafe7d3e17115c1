import type { StudioSeries } from "tinker-ts/wire/studio";

/** A series as it is drawn. */
export interface Curve extends StudioSeries {
  /** The smoothed curve at the last point of each bucket; null without smoothing. */
  readonly smoothed: Float32Array | null;
}

/** Series to be smoothed are fetched this many times finer than they are drawn. */
export const finerForSmoothing = 4;

/** Half-lives to fetch before the drawn range: earlier values count less than a pixel. */
export const halfLivesBefore = 24;

/**
 * Smooths a series with an exponential mean, and merges its buckets down to the requested number.
 *
 * - The half-life is in units of x, so that runs with different logging intervals match.
 * - The mean begins with the first value and not with zero, a constant stays a constant, and non-finite values are
 *   skipped.
 */
export function toCurve(
  series: StudioSeries,
  halfLife: number,
  range: readonly [number, number] | null,
  buckets: number,
): Curve {
  if (halfLife <= 0 || series.isAbandoned)
    return coarsened({ ...series, smoothed: null }, range, buckets);
  const smoothed = new Float32Array(series.length);
  let [sum, weight, before] = [0, 0, 0];
  for (let place = 0; place < series.length; place++) {
    const value = series.mean[place]!;
    if (!Number.isNaN(value)) {
      const x = series.x[place]!;
      const decay = weight === 0 ? 0 : 2 ** (-Math.max(0, x - before) / halfLife);
      sum = sum * decay + value;
      weight = weight * decay + 1;
      before = x;
    }
    smoothed[place] = sum / weight;
  }
  return coarsened({ ...series, smoothed }, range, buckets);
}

/** The part of a curve within a range, in wider buckets where there are too many; they lie on multiples of their width. */
function coarsened(curve: Curve, range: readonly [number, number] | null, buckets: number): Curve {
  const [from, to] = range ?? [-Infinity, Infinity];
  const first = curve.x.findIndex((x) => x + curve.width > from || x === from);
  const end = curve.x.findLastIndex((x) => x <= to) + 1;
  if (first < 0 || end <= first) return slice(curve, 0, 0);
  const part = slice(curve, first, end);
  if (part.length <= buckets) return part;
  const [low, high] = [part.x[0]!, part.x.at(-1)!];
  let width = Math.max(curve.width, 2 ** Math.ceil(Math.log2((high - low) / buckets)));
  while (Math.floor(high / width) - Math.floor(low / width) + 1 > buckets) width *= 2;
  const starts: number[] = [];
  part.x.forEach((x, place) => {
    if (place === 0 || Math.floor(x / width) !== Math.floor(part.x[place - 1]! / width))
      starts.push(place);
  });
  const merge = <T extends Float32Array | Uint32Array>(
    values: T,
    into: (before: number, value: number) => number,
  ): T => {
    const result = new (values.constructor as new (length: number) => T)(starts.length);
    for (const [index, start] of starts.entries()) {
      let merged = values[start]!;
      const stop = starts[index + 1] ?? part.length;
      for (let place = start + 1; place < stop; place++) {
        const value = values[place]!;
        merged = Number.isNaN(merged) ? value : Number.isNaN(value) ? merged : into(merged, value);
      }
      result[index] = merged;
    }
    return result;
  };
  const add = (before: number, value: number): number => before + value;
  const sizes = part.count ?? Uint32Array.from(part.mean, (value) => (Number.isNaN(value) ? 0 : 1));
  const count = merge(sizes, add);
  const sums = merge(
    Float32Array.from(part.mean, (value, place) => value * sizes[place]!),
    add,
  );
  return {
    ...part,
    width,
    length: starts.length,
    x: Float64Array.from(starts, (start) => Math.floor(part.x[start]! / width) * width),
    mean: sums.map((sum, place) => sum / count[place]!),
    min: merge(part.min, Math.min),
    max: merge(part.max, Math.max),
    smoothed: part.smoothed && merge(part.smoothed, (_, value) => value),
    count,
    nan: part.nan && merge(part.nan, add),
    plusInfinity: part.plusInfinity && merge(part.plusInfinity, add),
    minusInfinity: part.minusInfinity && merge(part.minusInfinity, add),
  };
}

function slice(curve: Curve, first: number, end: number): Curve {
  const { nan, plusInfinity, minusInfinity } = curve;
  if (first === 0 && end === curve.length) return curve;
  const count = curve.count?.subarray(first, end) ?? null;
  return {
    ...curve,
    total: count?.reduce((sum, one) => sum + one, 0) ?? end - first,
    length: end - first,
    x: curve.x.subarray(first, end),
    mean: curve.mean.subarray(first, end),
    min: curve.min.subarray(first, end),
    max: curve.max.subarray(first, end),
    smoothed: curve.smoothed?.subarray(first, end) ?? null,
    count,
    nan: nan?.subarray(first, end) ?? null,
    plusInfinity: plusInfinity?.subarray(first, end) ?? null,
    minusInfinity: minusInfinity?.subarray(first, end) ?? null,
  };
}
