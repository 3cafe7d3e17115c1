import { mergeRows } from "../recording/merge-points.js";
import type { ChunkRow, Columns, SeriesRow } from "../store/points-table.js";
import type { Store } from "../store/store.js";
import { extendSummary } from "../recording/fold-points.js";

/** Points that lie together, with what is known of them without looking. */
export interface Block {
  readonly firstX: number;
  readonly lastX: number;
  readonly count: number;
  /** Absent for points that are few and at hand. */
  readonly known?: ChunkRow;
  /** The series that it is a settled part of: neither it nor what is before it there changes any more. */
  readonly series?: string;
  /** The points; times only where they are asked for. */
  readonly columns: (withTimes: boolean) => Columns;
}

/** One metric of one attempt. */
export interface AttemptSeries {
  readonly attempt: number;
  readonly count: number;
  readonly firstX: number;
  readonly lastX: number;
  readonly summary: SeriesRow["summary"];
  readonly blocks: () => readonly Block[];
}

/** All points of a run by key; columns are read when they are wanted. */
export interface RunSeries {
  readonly keys: readonly string[];
  /** The attempts at a metric, in order. */
  readonly attempts: (key: string) => readonly AttemptSeries[];
  /** Where each attempt began, in order. */
  readonly starts: readonly { readonly attempt: number; readonly firstX: number }[];
}

/** The points of a run that the database has. */
export function storedSeries(store: Store, logId: string): RunSeries {
  const byKey = new Map<string, Map<number, { row?: SeriesRow; tail: Tail }>>();
  const entryOf = (key: string, attempt: number) => {
    const attempts = byKey.get(key) ?? new Map<number, { row?: SeriesRow; tail: Tail }>();
    byKey.set(key, attempts);
    const entry = attempts.get(attempt) ?? { tail: { x: [], value: [], at: [] } };
    attempts.set(attempt, entry);
    return entry;
  };
  for (const row of store.points.series(logId)) entryOf(row.key, row.attempt).row = row;
  for (const point of mergeRows(store.points.rows(logId, Number.MAX_SAFE_INTEGER))) {
    for (const [key, value] of point.values()) {
      const { tail } = entryOf(key, point.attempt);
      tail.x.push(point.x);
      tail.value.push(value);
      tail.at.push(point.at);
    }
  }
  const all = new Map(
    [...byKey].map(([key, attempts]) => [
      key,
      [...attempts]
        .toSorted(([a], [b]) => a - b)
        .map(([attempt, { row, tail }]) => attemptSeries(store, attempt, row, tail)),
    ]),
  );
  return {
    keys: [...all.keys()].toSorted(),
    attempts: (key) => all.get(key) ?? [],
    starts: startsOf(all),
  };
}

/** Several runs' series as one; keys of later ones that are taken get a prefix. */
export function joinedSeries(own: RunSeries, others: readonly RunSeries[]): RunSeries {
  const all = new Map(own.keys.map((key) => [key, own.attempts(key)]));
  for (const [index, other] of others.entries()) {
    for (const key of other.keys) {
      const name = all.has(key) ? `model ${index + 1}/${key}` : key;
      all.set(name, other.attempts(key));
    }
  }
  return {
    keys: [...all.keys()].toSorted(),
    attempts: (key) => all.get(key) ?? [],
    starts: own.starts.length > 0 ? own.starts : (others[0]?.starts ?? []),
  };
}

/** Where attempts began, over all metrics. */
export function startsOf(
  all: ReadonlyMap<string, readonly Pick<AttemptSeries, "attempt" | "firstX">[]>,
): { attempt: number; firstX: number }[] {
  const starts = new Map<number, number>();
  for (const attempts of all.values()) {
    for (const { attempt, firstX } of attempts) {
      starts.set(attempt, Math.min(starts.get(attempt) ?? Number.POSITIVE_INFINITY, firstX));
    }
  }
  return [...starts]
    .toSorted(([a], [b]) => a - b)
    .map(([attempt, firstX]) => ({ attempt, firstX }));
}

interface Tail {
  readonly x: number[];
  readonly value: number[];
  readonly at: number[];
}

function attemptSeries(
  store: Store,
  attempt: number,
  row: SeriesRow | undefined,
  tail: Tail,
): AttemptSeries {
  // The last x that became a column may have got a later value.
  const replaced = row !== undefined && tail.x[0] === row.lastX ? 1 : 0;
  return {
    attempt,
    count: (row?.count ?? 0) + tail.x.length - replaced,
    firstX: row?.firstX ?? tail.x[0] ?? 0,
    lastX: tail.x.at(-1) ?? row?.lastX ?? 0,
    summary: tail.x.length === 0 && row ? row.summary : extendSummary(row, tail.x, tail.value),
    blocks: () => [
      ...(row ? chunkBlocks(store, row.seriesId, row.count - replaced) : []),
      ...(tail.x.length > 0 ? [blockOf(tail)] : []),
    ],
  };
}

/**
 * The first points of a series by chunk, as many as were counted: what has been added since, while others had their
 * turn, is in the rows that were read with the count.
 */
function chunkBlocks(store: Store, seriesId: number, count: number): Block[] {
  const chunks = store.points.chunks(seriesId);
  // Numbers of series that were removed are given again.
  const series = `${store.points.removals} ${seriesId}`;
  const blocks: Block[] = [];
  const read = readerOf(store, seriesId);
  let left = count;
  for (const [index, known] of chunks.entries()) {
    if (left <= 0) break;
    const size = Math.min(left, known.count);
    left -= size;
    const columns = (withTimes: boolean): Columns => firstOf(size, read(known.number, withTimes));
    if (index < chunks.length - 1 && size === known.count) {
      blocks.push({ ...known, known, series, columns });
    } else {
      // It may grow, and its last value may be replaced: its points are taken as they are now.
      const now = columns(true);
      if (now.x.length > 0) blocks.push(blockOf(now));
    }
  }
  return blocks;
}

/** Chunks that are read at a time: whoever reads one mostly reads those behind it. */
const readAhead = 16;

/** Reads chunks; those that were read ahead are forgotten once they have been asked for. */
function readerOf(
  store: Store,
  seriesId: number,
): (number: number, withTimes: boolean) => Columns | undefined {
  let ahead = new Map<number, Columns>();
  let hasTimes = false;
  return (number, withTimes) => {
    if (!ahead.has(number) || hasTimes !== withTimes) {
      ahead = store.points.columns(seriesId, number, readAhead, withTimes);
      hasTimes = withTimes;
    }
    const found = ahead.get(number);
    ahead.delete(number);
    return found;
  };
}

function firstOf(count: number, columns: Columns | undefined): Columns {
  const { x, value, at } = columns ?? noColumns;
  return { x: x.subarray(0, count), value: value.subarray(0, count), at: at.subarray(0, count) };
}

const noColumns: Columns = {
  x: new Float64Array(0),
  value: new Float64Array(0),
  at: new Float64Array(0),
};

/** Points that are at hand as a block. */
export function blockOf({
  x,
  value,
  at,
}: Readonly<Record<keyof Columns, readonly number[] | Float64Array>>): Block {
  const columns: Columns = {
    x: new Float64Array(x),
    value: new Float64Array(value),
    at: new Float64Array(at),
  };
  return {
    firstX: x[0]!,
    lastX: x.at(-1)!,
    count: x.length,
    columns: () => columns,
  };
}
