import type { StudioSeries } from "tinker-ts/wire/studio";

/** Indices of a series within a range of x, plus one on each side so that lines reach the edge. */
export function visiblePlaces(
  { x, width }: Pick<StudioSeries, "x" | "width">,
  [from, to]: readonly [number, number],
): readonly [number, number] {
  let first = lowerBound(x, from - width);
  let last = lowerBound(x, to);
  while (last < x.length && x[last]! <= to) last++;
  first = Math.max(0, first - 1);
  last = Math.min(x.length, last + 1);
  return [first, last];
}

/** The first index with a value not below a bound. */
export function lowerBound(values: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where a bucket is drawn: in its middle. */
export function centreOf({ x, width }: Pick<StudioSeries, "x" | "width">, place: number): number {
  return x[place]! + width / 2;
}

/** The bucket nearest to an x, among those with values; -1 without any. */
export function nearestPlace(series: StudioSeries, at: number): number {
  const { x, mean } = series;
  if (x.length === 0) return -1;
  const right = Math.min(x.length - 1, lowerBound(x, at - series.width / 2));
  const candidates = [right - 1, right, right + 1].filter(
    (place) => place >= 0 && place < x.length,
  );
  let best = -1;
  for (const place of candidates) {
    const isSaying = !Number.isNaN(mean[place]!) || hasNonFinite(series, place);
    if (!isSaying) continue;
    if (best < 0 || Math.abs(centreOf(series, place) - at) < Math.abs(centreOf(series, best) - at))
      best = place;
  }
  return best < 0 ? right : best;
}

function hasNonFinite({ nan, plusInfinity, minusInfinity }: StudioSeries, place: number): boolean {
  return Boolean(nan?.[place] || plusInfinity?.[place] || minusInfinity?.[place]);
}

/** The span of x over all series; null without points. */
export function spanOfX(all: readonly StudioSeries[]): readonly [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (const series of all) {
    if (series.x.length === 0) continue;
    low = Math.min(low, series.x[0]!);
    high = Math.max(high, series.x.at(-1)! + series.width);
  }
  if (low > high) return null;
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** The range of y, and the numbers of points outside. */
export interface Bounds {
  readonly low: number;
  readonly high: number;
  /** Points (buckets of a long run) above the view. */
  readonly above: number;
  readonly below: number;
  /** Points that a log axis cannot show. */
  readonly notPositive: number;
}

/** Options of the range of y. */
export interface BoundsOptions {
  readonly range: readonly [number, number];
  readonly isLog: boolean;
  /** Ignores outliers; each series has its own bounds, so none is hidden. */
  readonly clipsOutliers: boolean;
}

/** The range of y for the visible part of the series. */
export function boundsOf(all: readonly StudioSeries[], options: BoundsOptions): Bounds {
  let low = Infinity;
  let high = -Infinity;
  let notPositive = 0;
  const seen = all.map((series) => {
    const [first, last] = visiblePlaces(series, options.range);
    const lows: number[] = [];
    const highs: number[] = [];
    for (let place = first; place < last; place++) {
      const bottom = series.min[place]!;
      const top = series.max[place]!;
      if (Number.isNaN(bottom)) continue;
      if (options.isLog && bottom <= 0) notPositive++;
      if (options.isLog && top <= 0) continue;
      lows.push(options.isLog && bottom <= 0 ? top : bottom);
      highs.push(top);
    }
    return { lows, highs };
  });
  for (const { lows, highs } of seen) {
    if (lows.length === 0) continue;
    const [from, to] = options.clipsOutliers ? coreOf(lows, highs) : [least(lows), largest(highs)];
    low = Math.min(low, from);
    high = Math.max(high, to);
  }
  if (low > high) return { low: options.isLog ? 0.1 : 0, high: 1, above: 0, below: 0, notPositive };
  let above = 0;
  let below = 0;
  for (const { lows, highs } of seen) {
    for (const value of highs) if (value > high) above++;
    for (const value of lows) if (value < low) below++;
  }
  return { ...padded(low, high, options.isLog), above, below, notPositive };
}

// Between the 2nd and the 98th of a hundred, and half of that range added on each side.
function coreOf(lows: readonly number[], highs: readonly number[]): readonly [number, number] {
  const sortedLows = Float64Array.from(lows).toSorted();
  const sortedHighs = Float64Array.from(highs).toSorted();
  const at = (values: Float64Array, share: number): number =>
    values[Math.min(values.length - 1, Math.floor(share * values.length))]!;
  const from = at(sortedLows, 0.02);
  const to = at(sortedHighs, 0.98);
  const margin = (to - from) / 2;
  return [Math.max(sortedLows[0]!, from - margin), Math.min(sortedHighs.at(-1)!, to + margin)];
}

function padded(low: number, high: number, isLog: boolean): { low: number; high: number } {
  if (isLog)
    return low === high ? { low: low / 2, high: high * 2 } : { low: low / 1.15, high: high * 1.15 };
  if (low === high) {
    const by = low === 0 ? 1 : Math.abs(low) * 0.1;
    return { low: low - by, high: high + by };
  }
  const by = (high - low) * 0.06;
  return { low: low - by, high: high + by };
}

function least(values: readonly number[]): number {
  return values.reduce((one, other) => Math.min(one, other), Infinity);
}

function largest(values: readonly number[]): number {
  return values.reduce((one, other) => Math.max(one, other), -Infinity);
}
