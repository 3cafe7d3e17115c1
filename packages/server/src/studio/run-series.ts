import type { SeriesRow } from "../store/series-table.js";
import type { Store } from "../store/store.js";

/** Every series of a run, by key. */
export interface RunSeries {
  readonly keys: readonly string[];
  /** The attempts at a metric, in order. */
  readonly attempts: (key: string) => readonly SeriesRow[];
  /** Where each attempt began, in order. */
  readonly starts: readonly { readonly attempt: number; readonly firstX: number }[];
}

/** The series of one run. */
export function storedSeries(store: Store, logId: string): RunSeries {
  const all = new Map<string, SeriesRow[]>();
  const starts = new Map<number, number>();
  for (const row of store.series.list(logId)) {
    const attempts = all.get(row.key);
    if (attempts) attempts.push(row);
    else all.set(row.key, [row]);
    const start = starts.get(row.attempt) ?? Number.POSITIVE_INFINITY;
    starts.set(row.attempt, Math.min(start, row.firstX));
  }
  return toSeries(
    all,
    [...starts].toSorted(([a], [b]) => a - b).map(([attempt, firstX]) => ({ attempt, firstX })),
  );
}

/** The series of several runs as one; keys of later ones that are taken get a prefix. */
export function joinedSeries(own: RunSeries, others: readonly RunSeries[]): RunSeries {
  const all = new Map(own.keys.map((key) => [key, own.attempts(key)]));
  for (const [index, other] of others.entries()) {
    for (const key of other.keys) {
      const name = all.has(key) ? `model ${index + 1}/${key}` : key;
      all.set(name, other.attempts(key));
    }
  }
  return toSeries(all, own.starts.length > 0 ? own.starts : (others[0]?.starts ?? []));
}

function toSeries(
  all: ReadonlyMap<string, readonly SeriesRow[]>,
  starts: RunSeries["starts"],
): RunSeries {
  return { keys: [...all.keys()].toSorted(), attempts: (key) => all.get(key) ?? [], starts };
}
