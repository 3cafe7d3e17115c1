import type { Columns, SeriesRow, SeriesSummary } from "../store/points-table.js";
import type { Store } from "../store/store.js";
import { chunkLength, summarize } from "./chunk.js";
import { mergeRows, type OpenPoint } from "./merge-points.js";
import { toPlain } from "./numbers.js";
import { Smoother } from "./smoothing.js";

/** Half-life of the mean that lists are sorted by, in steps. */
export const listHalfLife = 10;

/** Rows that become columns at a time: a few milliseconds. */
const maxRows = 256;

/**
 * Turns rows of points into columns, all but those of the last x, which may grow still. Runs inside a
 * transaction; tells whether there is more to do.
 */
export function foldPoints(store: Store, logId: string): boolean {
  const rows = store.points.rows(logId, maxRows);
  const last = rows.at(-1);
  if (!last) return false;
  const done = rows.filter(({ x, attempt }) => x !== last.x || attempt !== last.attempt);
  const upTo = done.at(-1)?.pointId;
  if (upTo === undefined) return false;
  // Rows of the last x that lie between others stay out of order otherwise.
  const folded = rows.filter(({ pointId }) => pointId <= upTo);
  appendPoints(store, logId, mergeRows(folded));
  store.points.dropRows(logId, upTo);
  return rows.length === maxRows;
}

/** Appends points to the series of a run. */
export function appendPoints(store: Store, logId: string, points: readonly OpenPoint[]): void {
  const known = new Map(
    store.points.series(logId).map((series) => [nameOf(series.attempt, series.key), series]),
  );
  for (const { attempt, key, columns } of toColumns(points)) {
    appendColumns(store, logId, known.get(nameOf(attempt, key)), { attempt, key, columns });
  }
}

interface NewColumns {
  readonly attempt: number;
  readonly key: string;
  readonly columns: { x: number[]; value: number[]; at: number[] };
}

function toColumns(points: readonly OpenPoint[]): NewColumns[] {
  const all = new Map<string, NewColumns>();
  for (const point of points) {
    for (const [key, value] of point.values()) {
      const name = nameOf(point.attempt, key);
      const found = all.get(name) ?? {
        attempt: point.attempt,
        key,
        columns: { x: [], value: [], at: [] },
      };
      all.set(name, found);
      found.columns.x.push(point.x);
      found.columns.value.push(value);
      found.columns.at.push(point.at);
    }
  }
  return [...all.values()];
}

function appendColumns(
  store: Store,
  logId: string,
  known: SeriesRow | undefined,
  { attempt, key, columns }: NewColumns,
): void {
  const { x, value, at } = columns;
  const previous = known && store.points.lastChunk(known.seriesId);
  const isOpen = previous !== undefined && previous.count < chunkLength;
  // A value that comes later for the last x takes the place of the one before.
  const replaced = previous && previous.lastX === x[0] ? 1 : 0;
  const kept = isOpen || replaced ? previous : undefined;
  const keptCount = (kept?.count ?? 0) - replaced;
  const joined = (before: Float64Array | undefined, more: readonly number[]): Float64Array => {
    const result = new Float64Array(keptCount + more.length);
    if (before) result.set(before.subarray(0, keptCount));
    result.set(more, keptCount);
    return result;
  };
  const whole: Columns = {
    x: joined(kept?.x, x),
    value: joined(kept?.value, value),
    at: joined(kept?.at, at),
  };
  const count = (known?.count ?? 0) - replaced + x.length;
  const row = {
    attempt,
    key,
    count,
    firstX: known?.firstX ?? x[0]!,
    lastX: x.at(-1)!,
    summary: extendSummary(known, x, value),
  };
  const seriesId = known?.seriesId ?? store.points.insertSeries(logId, row);
  if (known) store.points.updateSeries({ ...row, seriesId });
  let number = kept ? kept.number : (previous?.number ?? -1) + 1;
  for (let start = 0; start < whole.x.length; start += chunkLength) {
    const part = {
      x: whole.x.slice(start, start + chunkLength),
      value: whole.value.slice(start, start + chunkLength),
      at: whole.at.slice(start, start + chunkLength),
    };
    store.points.putChunk(seriesId, summarize(number, part), part);
    number++;
  }
}

/** What is known of a series after some more of its points. */
export function extendSummary(
  known: Pick<SeriesRow, "summary" | "lastX"> | undefined,
  x: readonly number[] | Float64Array,
  value: readonly number[] | Float64Array,
): SeriesSummary {
  const before = known?.summary;
  const smoother = new Smoother(
    listHalfLife,
    before && { sum: before.sum, weight: before.weight, x: known.lastX },
  );
  let { min = null, max = null, nonFinite = 0 } = before ?? {};
  for (let index = 0; index < value.length; index++) {
    const one = value[index]!;
    smoother.add(x[index]!, one);
    if (!Number.isFinite(one)) nonFinite++;
    else {
      min = min === null ? one : Math.min(min, one);
      max = max === null ? one : Math.max(max, one);
    }
  }
  const { sum, weight } = smoother.state;
  return {
    first: before?.first ?? toPlain(value[0] ?? Number.NaN),
    last: toPlain(value.at(-1) ?? Number.NaN),
    min,
    max,
    nonFinite,
    sum,
    weight,
  };
}

function nameOf(attempt: number, key: string): string {
  return `${attempt} ${key}`;
}
