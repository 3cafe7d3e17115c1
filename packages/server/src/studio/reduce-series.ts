import type { StudioColumn, StudioSeries } from "tinker-ts/wire";
import { Smoother } from "../recording/smoothing.js";
import type { Block } from "./run-series.js";

/** What is wanted of a series. */
export interface Reduction {
  /** Where to begin and end; what lies outside only counts for smoothing. */
  readonly from: number;
  readonly to: number;
  /** Most buckets of the answer. */
  readonly buckets: number;
  /** Half-life of the smoothed curve in units of x; 0 for none. */
  readonly halfLife: number;
}

/** The same x for every point of a block, from its step or its time; undefined keeps the step. */
export type Axis = (block: Block) => Float64Array;

/** A stretch of points: those of a block whose step is below the cut. */
export interface Stretch {
  readonly block: Block;
  /** Points from this step on belong to a later attempt, or null. */
  readonly cut: number | null;
  /** Points before this step belong to what still counts. */
  readonly begin: number | null;
}

/** The reduced columns of a series. */
export type Reduced = Omit<StudioSeries, "run" | "key" | "attempt" | "isAbandoned">;

/**
 * Points reduced to few buckets: least, largest and mean value of each, and how many were not finite.
 *
 * - Buckets are as wide as a power of two and lie on its multiples, whatever is asked for: a run that grows
 *   does not flicker, and runs share their grid.
 * - Where there are no more points than buckets, the answer is the points themselves.
 * - Chunks that lie in one bucket are answered from their summaries, unless every point is needed anyway.
 */
export function reduceSeries(
  stretches: readonly Stretch[],
  axis: Axis | null,
  wanted: Reduction,
): Reduced {
  const lowest = axis ? null : wanted;
  const walker = new Walker(stretches, axis, wanted);
  const total = walker.countWithin(lowest);
  if (total <= wanted.buckets) return walker.points(total);
  return walker.buckets(total);
}

/** The width of buckets for a range: the least power of two that needs no more than this many. */
export function bucketWidth(from: number, to: number, buckets: number): number {
  if (!(to > from)) return 1;
  let width = 2 ** Math.ceil(Math.log2((to - from) / buckets));
  // Buckets lie on multiples, so that one more may be needed than the range has room for.
  while (Math.floor(to / width) - Math.floor(from / width) + 1 > buckets) width *= 2;
  return width;
}

class Walker {
  readonly #stretches: readonly Stretch[];
  readonly #axis: Axis | null;
  readonly #wanted: Reduction;

  constructor(stretches: readonly Stretch[], axis: Axis | null, wanted: Reduction) {
    this.#stretches = stretches;
    this.#axis = axis;
    this.#wanted = wanted;
  }

  /** Points of the range; those of blocks at its ends are looked at. */
  countWithin(range: Reduction | null): number {
    let total = 0;
    for (const stretch of this.#stretches) {
      const { block } = stretch;
      const isWhole =
        range !== null && block.firstX >= range.from && block.lastX <= range.to && isUncut(stretch);
      if (isWhole) total += block.count;
      else if (range === null || (block.lastX >= range.from && block.firstX <= range.to)) {
        const { from, to } = this.#wanted;
        this.#each(stretch, (x) => {
          if (x >= from && x <= to) total++;
        });
      }
    }
    return total;
  }

  points(total: number): Reduced {
    const { from, to, halfLife } = this.#wanted;
    const x = new Float64Array(total);
    const mean = new Float32Array(total);
    const smoothed = halfLife > 0 ? new Float32Array(total) : null;
    const smoother = new Smoother(halfLife);
    const marks = new Marks(total);
    let at = 0;
    for (const stretch of this.#stretches) {
      if (!smoothed && this.#isOutside(stretch)) continue;
      this.#each(stretch, (place, value) => {
        if (smoothed) smoother.add(place, value);
        if (place < from || place > to) return;
        x[at] = place;
        mean[at] = Number.isFinite(value) ? value : Number.NaN;
        if (smoothed) smoothed[at] = smoother.value;
        marks.note(at, value);
        at++;
      });
    }
    return {
      width: 0,
      total,
      length: total,
      columns: [],
      x,
      mean,
      min: mean,
      max: mean,
      smoothed,
      count: null,
      ...marks.columns(total),
    };
  }

  buckets(total: number): Reduced {
    const { halfLife } = this.#wanted;
    const [from, to] = this.#range();
    const width = bucketWidth(from, to, this.#wanted.buckets);
    const first = Math.floor(from / width);
    const length = Math.floor(to / width) - first + 1;
    const least = new Float64Array(length).fill(Number.POSITIVE_INFINITY);
    const most = new Float64Array(length).fill(Number.NEGATIVE_INFINITY);
    const sum = new Float64Array(length);
    const count = new Uint32Array(length);
    const smoothed = halfLife > 0 ? new Float32Array(length).fill(Number.NaN) : null;
    const smoother = new Smoother(halfLife);
    const marks = new Marks(length);
    for (const stretch of this.#stretches) {
      const { known } = stretch.block;
      if (!smoothed && this.#isOutside(stretch)) continue;
      const isOne =
        known !== undefined &&
        !smoothed &&
        !this.#axis &&
        isUncut(stretch) &&
        known.firstX >= from &&
        known.lastX <= to &&
        Math.floor(known.firstX / width) === Math.floor(known.lastX / width);
      if (isOne) {
        const bucket = Math.floor(known.firstX / width) - first;
        least[bucket] = Math.min(least[bucket]!, known.least ?? Number.POSITIVE_INFINITY);
        most[bucket] = Math.max(most[bucket]!, known.most ?? Number.NEGATIVE_INFINITY);
        sum[bucket]! += known.total;
        count[bucket]! += known.finite;
        marks.add(bucket, known);
        continue;
      }
      this.#each(stretch, (place, value) => {
        if (smoothed) smoother.add(place, value);
        if (place < from || place > to) return;
        const bucket = Math.floor(place / width) - first;
        if (smoothed) smoothed[bucket] = smoother.value;
        if (!Number.isFinite(value)) {
          marks.note(bucket, value);
          return;
        }
        if (value < least[bucket]!) least[bucket] = value;
        if (value > most[bucket]!) most[bucket] = value;
        sum[bucket]! += value;
        count[bucket]!++;
      });
    }
    const filled = [...count.keys()].filter((bucket) => count[bucket]! > 0 || marks.has(bucket));
    const pick = (values: ArrayLike<number>): Float32Array =>
      Float32Array.from(filled, (bucket) => values[bucket]!);
    const empty = (value: number): number => (Number.isFinite(value) ? value : Number.NaN);
    return {
      width,
      total,
      length: filled.length,
      columns: [],
      x: Float64Array.from(filled, (bucket) => (first + bucket) * width),
      mean: Float32Array.from(filled, (bucket) => sum[bucket]! / count[bucket]!),
      min: pick(least).map(empty),
      max: pick(most).map(empty),
      smoothed: smoothed && pick(smoothed),
      count: Uint32Array.from(filled, (bucket) => count[bucket]!),
      ...marks.pick(filled),
    };
  }

  /** The range that is asked for, as far as there are points. */
  #range(): [number, number] {
    const { from, to } = this.#wanted;
    if (Number.isFinite(from) && Number.isFinite(to)) return [from, to];
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (const stretch of this.#stretches) {
      if (!this.#axis && isUncut(stretch)) {
        low = Math.min(low, stretch.block.firstX);
        high = Math.max(high, stretch.block.lastX);
      } else {
        this.#each(stretch, (x) => {
          low = Math.min(low, x);
          high = Math.max(high, x);
        });
      }
    }
    return [Math.max(from, low), Math.min(to, high)];
  }

  #isOutside({ block }: Stretch): boolean {
    if (this.#axis) return false;
    return block.lastX < this.#wanted.from || block.firstX > this.#wanted.to;
  }

  #each({ block, cut, begin }: Stretch, visit: (x: number, value: number) => void): void {
    const { x: steps, value } = block.columns(false);
    const places = this.#axis ? this.#axis(block) : steps;
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]!;
      if ((cut !== null && step >= cut) || (begin !== null && step < begin)) continue;
      const place = places[index]!;
      if (!Number.isNaN(place)) visit(place, value[index]!);
    }
  }
}

function isUncut({ block, cut, begin }: Stretch): boolean {
  return (cut === null || block.lastX < cut) && (begin === null || block.firstX >= begin);
}

type MarkColumns = Pick<StudioSeries, "nan" | "plusInfinity" | "minusInfinity">;

/** How many points of each bucket are not finite, and how. */
class Marks {
  readonly #nan: Uint32Array;
  readonly #plus: Uint32Array;
  readonly #minus: Uint32Array;

  constructor(length: number) {
    this.#nan = new Uint32Array(length);
    this.#plus = new Uint32Array(length);
    this.#minus = new Uint32Array(length);
  }

  note(bucket: number, value: number): void {
    if (Number.isNaN(value)) this.#nan[bucket]!++;
    else if (value === Number.POSITIVE_INFINITY) this.#plus[bucket]!++;
    else if (value === Number.NEGATIVE_INFINITY) this.#minus[bucket]!++;
  }

  add(bucket: number, { nan, plus, minus }: { nan: number; plus: number; minus: number }): void {
    this.#nan[bucket]! += nan;
    this.#plus[bucket]! += plus;
    this.#minus[bucket]! += minus;
  }

  has(bucket: number): boolean {
    return this.#nan[bucket]! + this.#plus[bucket]! + this.#minus[bucket]! > 0;
  }

  columns(length: number): MarkColumns {
    return this.pick(Array.from({ length }, (_, index) => index));
  }

  /** Columns without any mark are left out. */
  pick(filled: readonly number[]): MarkColumns {
    const column = (counts: Uint32Array): Uint32Array | null =>
      counts.some((count) => count > 0)
        ? Uint32Array.from(filled, (bucket) => counts[bucket]!)
        : null;
    return {
      nan: column(this.#nan),
      plusInfinity: column(this.#plus),
      minusInfinity: column(this.#minus),
    } satisfies Record<
      Exclude<StudioColumn, "x" | "mean" | "min" | "max" | "smoothed" | "count">,
      unknown
    >;
  }
}
