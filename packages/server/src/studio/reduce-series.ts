import type { StudioColumn, StudioSeries } from "tinker-ts/wire";
import { Smoother, type SmootherState } from "../recording/smoothing.js";
import type { Block } from "./run-series.js";
import type { SmoothingMemory } from "./smoothing-memory.js";

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

/** The x of every point of a block, from its step or its time; null keeps the step. */
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
 * Points reduced to few buckets: least, largest and mean value of each, and how many were not finite. Pauses after
 * every block, because there may be thousands.
 *
 * - Buckets are as wide as a power of two and lie on its multiples, whatever is asked for: a run that grows
 *   does not flicker, and runs share their grid.
 * - Where there are no more points than buckets, the answer is the points themselves.
 * - Chunks that lie in one bucket are answered from their summaries.
 * - Smoothing has seen every point; where it stood at the ends of chunks is remembered, so that it need not see them
 *   again.
 */
export function* reduceSeries(
  stretches: readonly Stretch[],
  axis: Axis | null,
  wanted: Reduction,
  memory: SmoothingMemory | null = null,
): Generator<void, Reduced, void> {
  const walker = new Walker(stretches, axis, wanted, memory);
  const total = yield* walker.countWithin();
  return yield* total <= wanted.buckets ? walker.points(total) : walker.buckets(total);
}

/** The width of buckets for a range: the least power of two that needs no more than this many. */
export function bucketWidth(from: number, to: number, buckets: number): number {
  if (!(to > from)) return 1;
  let width = 2 ** Math.ceil(Math.log2((to - from) / buckets));
  // Buckets lie on multiples, so that one more may be needed than the range has room for.
  while (Math.floor(to / width) - Math.floor(from / width) + 1 > buckets) width *= 2;
  return width;
}

/** Points of a stretch that count, by their x. */
interface Points {
  readonly x: Float64Array;
  readonly value: Float64Array;
}

class Walker {
  readonly #stretches: readonly Stretch[];
  readonly #axis: Axis | null;
  readonly #wanted: Reduction;
  readonly #smoother: Smoother | null;
  /** Where smoothing stood at the ends of the first stretches, as far as that is known. */
  readonly #ends: SmootherState[];
  /** How many stretches from the first on will stay what they are. */
  readonly #settled: number;

  constructor(
    stretches: readonly Stretch[],
    axis: Axis | null,
    wanted: Reduction,
    memory: SmoothingMemory | null,
  ) {
    this.#stretches = stretches;
    this.#axis = axis;
    this.#wanted = wanted;
    this.#smoother = wanted.halfLife > 0 ? new Smoother(wanted.halfLife) : null;
    const series = stretches[0]?.block.series;
    const isKept = series !== undefined && memory !== null && axis === null && this.#smoother;
    this.#ends = isKept ? memory.ends(series, wanted.halfLife) : [];
    const other = stretches.findIndex(
      (stretch) => stretch.block.series !== series || !isUncut(stretch),
    );
    this.#settled = isKept ? (other < 0 ? stretches.length : other) : 0;
  }

  /** Points of the range; those of blocks at its ends are looked at. */
  *countWithin(): Generator<void, number, void> {
    const { from, to } = this.#wanted;
    let total = 0;
    for (const stretch of this.#stretches) {
      const { block } = stretch;
      if (this.#isOutside(stretch)) continue;
      if (!this.#axis && block.firstX >= from && block.lastX <= to && isUncut(stretch)) {
        total += block.count;
        continue;
      }
      for (const x of this.#points(stretch).x) if (x >= from && x <= to) total++;
      yield;
    }
    return total;
  }

  *points(total: number): Generator<void, Reduced, void> {
    const { from, to } = this.#wanted;
    const x = new Float64Array(total);
    const mean = new Float32Array(total);
    const smoother = this.#smoother;
    const smoothed = smoother && new Float32Array(total);
    const marks = new Marks(total);
    let length = 0;
    for (let index = this.#first(); index < this.#stretches.length; index++) {
      const stretch = this.#stretches[index]!;
      if (this.#isOutside(stretch) && (!smoother || stretch.block.firstX > to)) continue;
      const points = this.#points(stretch);
      for (let place = 0; place < points.x.length; place++) {
        const at = points.x[place]!;
        const value = points.value[place]!;
        smoother?.add(at, value);
        // What is counted may have been forgotten since, and more may have come.
        if (at < from || at > to || length === total) continue;
        x[length] = at;
        mean[length] = Number.isFinite(value) ? forTheEye(value) : Number.NaN;
        if (smoothed) smoothed[length] = forTheEye(smoother.value);
        marks.note(length, value);
        length++;
      }
      this.#remember(index);
      yield;
    }
    const kept = mean.subarray(0, length);
    return {
      width: 0,
      total: length,
      length,
      columns: [],
      x: x.subarray(0, length),
      mean: kept,
      min: kept,
      max: kept,
      smoothed: smoothed && smoothed.subarray(0, length),
      count: null,
      ...marks.columns(length),
    };
  }

  *buckets(total: number): Generator<void, Reduced, void> {
    const [from, to] = yield* this.#range();
    const width = bucketWidth(from, to, this.#wanted.buckets);
    const first = Math.floor(from / width);
    const length = Math.floor(to / width) - first + 1;
    const least = new Float64Array(length).fill(Number.POSITIVE_INFINITY);
    const most = new Float64Array(length).fill(Number.NEGATIVE_INFINITY);
    const sum = new Float64Array(length);
    const count = new Uint32Array(length);
    const smoother = this.#smoother;
    const smoothed = smoother && new Float32Array(length).fill(Number.NaN);
    const marks = new Marks(length);
    for (let index = this.#first(); index < this.#stretches.length; index++) {
      const stretch = this.#stretches[index]!;
      const { known, firstX, lastX } = stretch.block;
      if (this.#isOutside(stretch) && (!smoother || firstX > to)) continue;
      const isOne =
        known !== undefined &&
        !this.#axis &&
        (!smoother || index < Math.min(this.#ends.length, this.#settled)) &&
        isUncut(stretch) &&
        firstX >= from &&
        lastX <= to &&
        Math.floor(firstX / width) === Math.floor(lastX / width);
      if (isOne) {
        const bucket = Math.floor(firstX / width) - first;
        least[bucket] = Math.min(least[bucket]!, known.least ?? Number.POSITIVE_INFINITY);
        most[bucket] = Math.max(most[bucket]!, known.most ?? Number.NEGATIVE_INFINITY);
        sum[bucket]! += known.total;
        count[bucket]! += known.finite;
        marks.add(bucket, known);
        if (smoothed) {
          smoother.state = this.#ends[index]!;
          smoothed[bucket] = forTheEye(smoother.value);
        }
        continue;
      }
      const points = this.#points(stretch);
      // Most points lie in the bucket of the one before.
      let bucket = 0;
      let start = Number.NaN;
      let end = Number.NaN;
      for (let place = 0; place < points.x.length; place++) {
        const x = points.x[place]!;
        const value = points.value[place]!;
        smoother?.add(x, value);
        if (x < from || x > to) continue;
        if (!(x >= start && x < end)) {
          bucket = Math.floor(x / width) - first;
          start = (first + bucket) * width;
          end = start + width;
        }
        if (smoothed) smoothed[bucket] = forTheEye(smoother.value);
        if (!Number.isFinite(value)) {
          marks.note(bucket, value);
          continue;
        }
        if (value < least[bucket]!) least[bucket] = value;
        if (value > most[bucket]!) most[bucket] = value;
        sum[bucket]! += value;
        count[bucket]!++;
      }
      this.#remember(index);
      yield;
    }
    const filled: number[] = [];
    for (let bucket = 0; bucket < length; bucket++) {
      if (count[bucket]! > 0 || marks.has(bucket)) filled.push(bucket);
    }
    // A bucket may have marks only.
    const pick = (values: ArrayLike<number>): Float32Array =>
      Float32Array.from(filled, (bucket) =>
        count[bucket]! > 0 ? forTheEye(values[bucket]!) : Number.NaN,
      );
    return {
      width,
      total,
      length: filled.length,
      columns: [],
      x: Float64Array.from(filled, (bucket) => (first + bucket) * width),
      mean: pick(sum.map((one, bucket) => one / count[bucket]!)),
      min: pick(least),
      max: pick(most),
      smoothed: smoothed && Float32Array.from(filled, (bucket) => smoothed[bucket]!),
      count: Uint32Array.from(filled, (bucket) => count[bucket]!),
      ...marks.pick(filled),
    };
  }

  /** The stretch to begin with; smoothing stands where it stood at its beginning. */
  #first(): number {
    if (!this.#smoother) return 0;
    const { from } = this.#wanted;
    const within = this.#stretches.findIndex(({ block }) => block.lastX >= from);
    const known = Math.min(this.#ends.length, this.#settled);
    const first = Math.min(within < 0 ? known : within, known);
    if (first > 0) this.#smoother.state = this.#ends[first - 1]!;
    return first;
  }

  #remember(index: number): void {
    if (index < this.#settled && index === this.#ends.length)
      this.#ends.push(this.#smoother!.state);
  }

  /** The range that is asked for, as far as there are points. */
  *#range(): Generator<void, [number, number], void> {
    const { from, to } = this.#wanted;
    if (Number.isFinite(from) && Number.isFinite(to)) return [from, to];
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (const stretch of this.#stretches) {
      if (!this.#axis && isUncut(stretch)) {
        low = Math.min(low, stretch.block.firstX);
        high = Math.max(high, stretch.block.lastX);
        continue;
      }
      for (const x of this.#points(stretch).x) {
        if (x < low) low = x;
        if (x > high) high = x;
      }
      yield;
    }
    return [Math.max(from, low), Math.min(to, high)];
  }

  #isOutside({ block }: Stretch): boolean {
    if (this.#axis) return false;
    return block.lastX < this.#wanted.from || block.firstX > this.#wanted.to;
  }

  /** Points without those that are cut off, and without those whose x is not known. */
  #points(stretch: Stretch): Points {
    const { block, cut, begin } = stretch;
    const { x: steps, value } = block.columns(false);
    const x = this.#axis ? this.#axis(block) : steps;
    if (!this.#axis && isUncut(stretch)) return { x, value };
    const isMeant = (_: number, index: number): boolean => {
      const step = steps[index]!;
      const isCut = (cut !== null && step >= cut) || (begin !== null && step < begin);
      return !isCut && !Number.isNaN(x[index]);
    };
    return { x: x.filter(isMeant), value: value.filter(isMeant) };
  }
}

/** The columns of an answer have half the digits, and hold no number beyond this. */
const largest = Math.fround(3.4028234e38);

function forTheEye(value: number): number {
  return Math.max(-largest, Math.min(largest, value));
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
