import type { StudioSeries } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";
import { reduceSeries, type Axis, type Reduction, type Stretch } from "./reduce-series.js";
import type { AttemptSeries, Block, RunSeries } from "./run-series.js";

/** What is asked for. */
export interface SeriesQuery extends Reduction {
  /** `step`, `tokens`, `time`, `relative`, `active`, or the key of a metric that grows. */
  readonly x: string;
}

/** One metric of one run: what counts, and what later attempts have replaced. */
export function readSeries(
  run: string,
  series: RunSeries,
  key: string,
  query: SeriesQuery,
): StudioSeries[] {
  const attempts = series.attempts(key);
  if (attempts.length === 0) return [];
  const axis = axisOf(series, query.x, key);
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
      ...reduceSeries(current, axis, query),
    },
  ];
  for (const one of attempts) {
    const cut = cutOf(one);
    if (cut === null || one.lastX < cut) continue;
    const left = one.blocks().map((block): Stretch => ({ block, cut: null, begin: cut }));
    const reduced = reduceSeries(left, axis, query);
    if (reduced.length > 0) {
      answer.push({ run, key, attempt: one.attempt, isAbandoned: true, ...reduced });
    }
  }
  return answer;
}

/** How a point's x is found; null for its step. */
function axisOf(series: RunSeries, x: string, key: string): Axis | null {
  switch (x) {
    case "step":
      return null;
    case "time":
      return (block) => block.columns(true).at.map((at) => at / 1000);
    case "relative": {
      const start = firstTime(series, key);
      return (block) => block.columns(true).at.map((at) => (at - start) / 1000);
    }
    case "active": {
      const active = activeTime(series, key);
      return (block) => block.columns(true).at.map((at) => active(at) / 1000);
    }
    case "tokens": {
      const counted = ["server/tokens:sum", "tokens", "num_tokens", "num_loss_tokens"];
      const found = counted.find((name) => series.attempts(name).length > 0);
      if (found === undefined) return (block) => block.columns(false).x.map(() => Number.NaN);
      return lookUp(series, found, true);
    }
    default:
      if (series.attempts(x).length > 0) return lookUp(series, x, false);
      throw badRequest(
        "x",
        `${x} is no metric of this run; use step, tokens, time, relative, active or a metric's key`,
      );
  }
}

/** A point's x is what another metric was at the same step; it never goes back. */
function lookUp(series: RunSeries, key: string, isCounted: boolean): Axis {
  const steps: number[] = [];
  const values: number[] = [];
  let value = isCounted ? 0 : Number.NEGATIVE_INFINITY;
  for (const block of blocksOf(series, key)) {
    const columns = block.columns(false);
    for (const [index, step] of columns.x.entries()) {
      const one = columns.value[index]!;
      if (!Number.isFinite(one)) continue;
      value = isCounted ? value + one : Math.max(value, one);
      steps.push(step);
      values.push(value);
    }
  }
  return (block) => {
    let place = 0;
    return block.columns(false).x.map((step) => {
      while (place < steps.length - 1 && steps[place + 1]! <= step) place++;
      return steps.length > 0 && steps[place]! <= step ? values[place]! : Number.NaN;
    });
  };
}

function firstTime(series: RunSeries, key: string): number {
  let first = Number.POSITIVE_INFINITY;
  for (const block of blocksOf(series, key)) {
    first = Math.min(first, block.columns(true).at[0] ?? Number.POSITIVE_INFINITY);
    break;
  }
  return first;
}

/** Time without pauses: a gap that is ten times the usual one, and a minute at least, does not count. */
function activeTime(series: RunSeries, key: string): (at: number) => number {
  const times: number[] = [];
  for (const block of blocksOf(series, key)) times.push(...block.columns(true).at);
  times.sort((a, b) => a - b);
  const gaps = times.slice(1).map((time, index) => time - times[index]!);
  const usual = gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
  const longest = Math.max(60_000, 10 * usual);
  let active = 0;
  const known = new Map<number, number>();
  for (const [index, time] of times.entries()) {
    const gap = index === 0 ? 0 : gaps[index - 1]!;
    if (gap <= longest) active += gap;
    known.set(time, active);
  }
  return (at) => known.get(at) ?? Number.NaN;
}

function* blocksOf(series: RunSeries, key: string): Generator<Block> {
  for (const attempt of series.attempts(key)) yield* attempt.blocks();
}
