import type { StudioSeries } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";
import { reduceSeries, type Axis, type Reduction, type Stretch } from "./reduce-series.js";
import type { AttemptSeries, Block, RunSeries } from "./run-series.js";
import type { SmoothingMemory } from "./smoothing-memory.js";

/** What is asked for. */
export interface SeriesQuery extends Reduction {
  /** `step`, `tokens`, `time`, `relative`, `active`, or the key of a metric that grows. */
  readonly x: string;
}

/** One metric of one run: what counts, and what later attempts have replaced. Pauses now and then. */
export function* readSeries(
  run: string,
  series: RunSeries,
  key: string,
  query: SeriesQuery,
  memory: SmoothingMemory,
): Generator<void, StudioSeries[], void> {
  const attempts = series.attempts(key);
  if (attempts.length === 0) return [];
  const axis = yield* axisOf(series, query.x, key);
  const cutOf = ({ attempt }: AttemptSeries): number | null => {
    const later = series.starts.filter((start) => start.attempt > attempt);
    return later.length === 0 ? null : Math.min(...later.map(({ firstX }) => firstX));
  };
  const current = attempts.flatMap((one) =>
    one.blocks().map((block): Stretch => ({ block, cut: cutOf(one), begin: null })),
  );
  const answer: StudioSeries[] = [
    {
      run,
      key,
      attempt: attempts.at(-1)!.attempt,
      isAbandoned: false,
      ...(yield* reduceSeries(current, axis, query, memory)),
    },
  ];
  for (const one of attempts) {
    const cut = cutOf(one);
    if (cut === null || one.lastX < cut) continue;
    const left = one.blocks().map((block): Stretch => ({ block, cut: null, begin: cut }));
    const reduced = yield* reduceSeries(left, axis, query);
    if (reduced.length > 0) {
      answer.push({ run, key, attempt: one.attempt, isAbandoned: true, ...reduced });
    }
  }
  return answer;
}

/** How a point's x is found; null for its step. */
function* axisOf(series: RunSeries, x: string, key: string): Generator<void, Axis | null, void> {
  switch (x) {
    case "step":
      return null;
    case "time":
      return (block) => block.columns(true).at.map((at) => at / 1000);
    case "relative": {
      const start = firstTime(series, key);
      return (block) => block.columns(true).at.map((at) => (at - start) / 1000);
    }
    case "active":
      return yield* activeTime(series, key);
    case "tokens": {
      const counted = ["server/tokens:sum", "tokens", "num_tokens", "num_loss_tokens"];
      const found = counted.find((name) => series.attempts(name).length > 0);
      if (found === undefined) return (block) => block.columns(false).x.map(() => Number.NaN);
      return yield* lookUp(series, found, true);
    }
    default:
      if (series.attempts(x).length > 0) return yield* lookUp(series, x, false);
      throw badRequest(
        "x",
        `${x} is no metric of this run; use step, tokens, time, relative, active or a metric's key`,
      );
  }
}

/** A point's x is what another metric was at the same step; it never goes back. */
function* lookUp(series: RunSeries, key: string, isCounted: boolean): Generator<void, Axis, void> {
  const steps: number[] = [];
  const values: number[] = [];
  for (const block of blocksOf(series, key)) {
    const columns = block.columns(false);
    for (let index = 0; index < columns.x.length; index++) {
      const step = columns.x[index]!;
      const one = columns.value[index]!;
      if (!Number.isFinite(one)) continue;
      // A later attempt replaces what was from its first step on.
      while (steps.length > 0 && steps.at(-1)! >= step) {
        steps.pop();
        values.pop();
      }
      const before = values.at(-1) ?? (isCounted ? 0 : Number.NEGATIVE_INFINITY);
      steps.push(step);
      values.push(isCounted ? before + one : Math.max(before, one));
    }
    yield;
  }
  return (block) => {
    let place = lastUpTo(steps, block.firstX);
    return block.columns(false).x.map((step) => {
      while (place < steps.length - 1 && steps[place + 1]! <= step) place++;
      return place >= 0 ? values[place]! : Number.NaN;
    });
  };
}

function firstTime(series: RunSeries, key: string): number {
  for (const block of blocksOf(series, key)) return block.columns(true).at[0] ?? Number.NaN;
  return Number.NaN;
}

/** Gaps that are looked at to know the usual one. */
const maxGaps = 10_000;

/** Time without pauses: a gap that is ten times the usual one, and a minute at least, does not count. */
function* activeTime(series: RunSeries, key: string): Generator<void, Axis, void> {
  const times: number[] = [];
  let isAscending = true;
  for (const block of blocksOf(series, key)) {
    for (const at of block.columns(true).at) {
      if (Number.isNaN(at)) continue;
      isAscending &&= !(at < times.at(-1)!);
      times.push(at);
    }
    yield;
  }
  if (!isAscending) times.sort((a, b) => a - b);
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
  return (block) =>
    block.columns(true).at.map((at) => {
      const paused = pauses[lastUpTo(ends, at)] ?? 0;
      return (at - start - paused) / 1000;
    });
}

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

function* blocksOf(series: RunSeries, key: string): Generator<Block> {
  for (const attempt of series.attempts(key)) yield* attempt.blocks();
}
