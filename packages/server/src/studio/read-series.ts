import type { StudioSeries } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";
import { nextUp, topLevel } from "../store/series-batch.js";
import type { Entry, Range, SeriesRow, SeriesTable } from "../store/series-table.js";
import { reduceEntries, type Reduced } from "./reduce-entries.js";
import type { RunSeries } from "./run-series.js";

/** What is asked for. */
export interface SeriesQuery {
  /** `step`, `tokens`, `time`, `relative`, `active`, or the key of a metric that grows. */
  readonly x: string;
  /** The range of x, both ends included. */
  readonly from: number;
  readonly to: number;
  /** Most buckets of the answer. */
  readonly buckets: number;
}

/** Points of a series within a range of steps. */
interface Span extends Range {
  readonly seriesId: number;
}

/** Finds the x of entries. */
type Axis = (entries: readonly Entry[]) => readonly number[];

const everything: Range = { from: Number.NEGATIVE_INFINITY, before: Number.POSITIVE_INFINITY };

/** Reads the curves of one run, with a pause behind every query of the database. */
export class SeriesReader {
  readonly #table: SeriesTable;
  readonly #series: RunSeries;

  constructor(table: SeriesTable, series: RunSeries) {
    this.#table = table;
    this.#series = series;
  }

  /** One metric: the current curve, and the points that later attempts have replaced. */
  *read(run: string, key: string, query: SeriesQuery): Generator<void, StudioSeries[], void> {
    const attempts = this.#series.attempts(key);
    if (attempts.length === 0) return [];
    const current = attempts.map((one) => ({ seriesId: one.seriesId, ...this.#current(one) }));
    const { attempt } = attempts.at(-1)!;
    const reduced = yield* this.#reduce(current, key, query);
    const answer: StudioSeries[] = [{ run, key, attempt, isAbandoned: false, ...reduced }];
    for (const one of attempts) {
      const { before } = this.#current(one);
      if (one.lastX < before) continue;
      const left = { seriesId: one.seriesId, from: before, before: Number.POSITIVE_INFINITY };
      const tail = yield* this.#reduce([left], key, query);
      if (tail.length > 0) {
        answer.push({ run, key, attempt: one.attempt, isAbandoned: true, ...tail });
      }
    }
    return answer;
  }

  /** The steps of an attempt that no later one has replaced. */
  #current({ attempt }: SeriesRow): Range {
    const later = this.#series.starts.filter((start) => start.attempt > attempt);
    return {
      ...everything,
      before: Math.min(everything.before, ...later.map(({ firstX }) => firstX)),
    };
  }

  *#reduce(
    spans: readonly Span[],
    key: string,
    query: SeriesQuery,
  ): Generator<void, Reduced, void> {
    const { x, from, to, buckets } = query;
    let steps: Range = x === "step" ? { from, before: nextUp(to) } : everything;
    let { entries, isWhole } = yield* this.#entries(spans, steps, buckets);
    let places = (yield* this.#axis(x, key, steps))(entries);
    if (x !== "step" && (Number.isFinite(from) || Number.isFinite(to))) {
      // Which steps are meant follows from a coarse look at all of them.
      const first = places.findLastIndex((place) => place < from);
      const last = places.findIndex((place) => place > to);
      steps = {
        from: entries[first]?.x ?? everything.from,
        before: entries[last]?.lastX ?? everything.before,
      };
      ({ entries, isWhole } = yield* this.#entries(spans, steps, buckets));
      places = (yield* this.#axis(x, key, steps))(entries);
    }
    return reduceEntries(entries, places, isWhole, query);
  }

  /** Entries of a range of steps: about as many as buckets, up to eight times that; whole when they are points. */
  *#entries(
    spans: readonly Span[],
    range: Range,
    buckets: number,
  ): Generator<void, { entries: Entry[]; isWhole: boolean }, void> {
    const within = spans.map(({ seriesId, from, before }) => ({
      seriesId,
      from: Math.max(from, range.from),
      before: Math.min(before, range.before),
    }));
    const count = (level: number): number =>
      within.reduce((sum, span) => sum + this.#table.countRollups(span.seriesId, level, span), 0);
    let level = topLevel;
    while (level > 0 && count(level) < buckets) level--;
    const entries: Entry[] = [];
    for (const span of within) {
      for (const entry of this.#table.entries(span.seriesId, level, span)) entries.push(entry);
      yield;
    }
    return { entries, isWhole: level === 0 };
  }

  *#axis(x: string, key: string, steps: Range): Generator<void, Axis, void> {
    switch (x) {
      case "step":
        return (entries) => entries.map((entry) => entry.x);
      case "time":
        return (entries) => entries.map(({ at }) => at / 1000);
      case "relative": {
        const [first] = this.#series.attempts(key);
        const start = this.#table.points(first!.seriesId, everything.from, 1)[0]?.at ?? Number.NaN;
        return (entries) => entries.map(({ at }) => (at - start) / 1000);
      }
      case "active":
        return yield* this.#activeTime(key);
      case "tokens": {
        const counts = ["server/tokens:sum", "tokens", "num_tokens", "num_loss_tokens"];
        const known = counts.find((name) => this.#series.attempts(name).length > 0);
        if (known === undefined) return (entries) => entries.map(() => Number.NaN);
        return yield* this.#lookUp(known, steps, true);
      }
      default:
        if (this.#series.attempts(x).length > 0) return yield* this.#lookUp(x, steps, false);
        throw badRequest(
          "x",
          `${x} is no metric of this run; use step, tokens, time, relative, active or a metric's key`,
        );
    }
  }

  /** The value of another metric at the same step: its sum so far where it counts, else its largest so far. */
  *#lookUp(key: string, steps: Range, isCounted: boolean): Generator<void, Axis, void> {
    const spans = this.#series
      .attempts(key)
      .map((one) => ({ seriesId: one.seriesId, ...this.#current(one) }));
    const earlier = { ...everything, before: steps.from };
    const parts = [
      ...(yield* this.#entries(spans, earlier, axisEntries)).entries,
      ...(yield* this.#entries(spans, steps, axisEntries)).entries,
    ].filter(({ finite }) => finite > 0);
    const ends: number[] = [];
    for (const { total, most } of parts) {
      const before = ends.at(-1);
      ends.push(isCounted ? (before ?? 0) + total : Math.max(before ?? most, most));
    }
    const starts = parts.map(({ x }) => x);
    return (entries) =>
      entries.map(({ x }) => {
        const place = lastUpTo(starts, x);
        const part = parts[place];
        if (!part) return Number.NaN;
        const end = ends[place]!;
        if (x >= part.lastX) return end;
        const start = ends[place - 1] ?? (isCounted ? 0 : end);
        return start + ((end - start) * (x - part.x)) / (part.lastX - part.x);
      });
  }

  /** Time without pauses: a gap that is ten times the usual one, and a minute at least, does not count. */
  *#activeTime(key: string): Generator<void, Axis, void> {
    const times: number[] = [];
    for (const { seriesId } of this.#series.attempts(key)) {
      let from = everything.from;
      for (;;) {
        const points = this.#table.points(seriesId, from, pointsAtATime);
        for (const { at } of points) if (!Number.isNaN(at)) times.push(at);
        yield;
        if (points.length < pointsAtATime) break;
        from = nextUp(points.at(-1)!.x);
      }
    }
    times.sort((a, b) => a - b);
    const stride = Math.ceil(times.length / maxGaps);
    const gaps: number[] = [];
    for (let index = 1; index < times.length; index += stride) {
      gaps.push(times[index]! - times[index - 1]!);
    }
    const usual = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
    const longest = Math.max(60_000, 10 * usual);
    // The time that is left out before each pause's end.
    const ends: number[] = [];
    const pauses: number[] = [];
    for (let index = 1; index < times.length; index++) {
      const gap = times[index]! - times[index - 1]!;
      if (gap <= longest) continue;
      ends.push(times[index]!);
      pauses.push((pauses.at(-1) ?? 0) + gap);
    }
    const start = times[0] ?? Number.NaN;
    return (entries) =>
      entries.map(({ at }) => (at - start - (pauses[lastUpTo(ends, at)] ?? 0)) / 1000);
  }
}

/** All of one series, by step. */
export function readCurve(table: SeriesTable, { seriesId }: SeriesRow, buckets: number): Reduced {
  let level = topLevel;
  while (level > 0 && table.countRollups(seriesId, level, everything) < buckets) level--;
  const entries = table.entries(seriesId, level, everything);
  const [from, to] = [everything.from, everything.before];
  return reduceEntries(
    entries,
    entries.map(({ x }) => x),
    level === 0,
    { from, to, buckets },
  );
}

/** Entries of a metric that others are placed by. */
const axisEntries = 2000;
const pointsAtATime = 10_000;
/** Gaps that are looked at to know the usual one. */
const maxGaps = 10_000;

/** The place of the last of some ascending numbers that is not above one; −1 without any. */
function lastUpTo(numbers: readonly number[], most: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
