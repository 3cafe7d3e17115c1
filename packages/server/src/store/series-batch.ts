import { type Plain, type SqlDatabase, toNumber, toPlain } from "./sql.js";

/** How values of one x are merged: by the suffix of their names, or the last one replaces the others. */
export type PointKind = "pass" | "forward" | "step" | "log";

/** Values of several metrics at an x. */
export interface PointRow {
  readonly attempt: number;
  readonly x: number;
  /** Milliseconds; null where unknown. */
  readonly at: number | null;
  readonly kind: PointKind;
  readonly values: Readonly<Record<string, Plain>>;
}

/** A series while rows are added: its last point, and the summary of those before it. */
interface State {
  readonly seriesId: number;
  count: number;
  first: number;
  lastX: number;
  last: number;
  /** Values that were merged into the last one. */
  merged: number;
  least: number | null;
  most: number | null;
  nonFinite: number;
  /** Mean with a half-life of `halfLife` steps, and its weight at the last x. */
  mean: number;
  weight: number;
}

/** Points of a summary of the first level, and summaries of one of the next. */
export const pointsPerRollup = 16;
export const rollupsPerRollup = 8;

/** The coarsest level of summaries: of 1024 points. Level 0 are the points themselves. */
export const topLevel = 3;

/** Half-life of the mean that lists are sorted by, in steps. */
const halfLife = 10;

/** Values at an x that follow from others: the quotient of the first by whichever of the rest there is. */
const quotients: readonly (readonly [name: string, top: string, ...bottoms: string[]])[] = [
  ["nll", "loss:sum", "weights:sum", "targets:sum"],
  ["forward/nll", "forward/loss:sum", "forward/weights:sum", "forward/targets:sum"],
  ["server/tokens_per_second", "server/tokens:sum", "server/compute_seconds:sum"],
];

const finiteValues = "FILTER (WHERE typeof(value) = 'real')";

/** Adds rows of points to the series of a run; used within one transaction, which ends with `write`. */
export class SeriesBatch {
  readonly #database: SqlDatabase;
  readonly #logId: string;
  readonly #states = new Map<string, State | null>();
  readonly #changed = new Set<State>();

  constructor(database: SqlDatabase, logId: string) {
    this.#database = database;
    this.#logId = logId;
  }

  add({ attempt, x, at, kind, values }: PointRow): void {
    const here = new Map<string, number>();
    for (const [key, given] of Object.entries(values)) {
      const value = toNumber(given);
      if (value !== undefined) here.set(key, this.#set(attempt, key, { x, at, value }, kind));
    }
    const find = (key: string): number | undefined => {
      const state = this.#find(attempt, key);
      return state?.lastX === x ? state.last : undefined;
    };
    for (const [name, top, ...bottoms] of quotients) {
      if (![top, ...bottoms].some((key) => here.has(key))) continue;
      const above = find(top);
      const below = bottoms.map(find).find((value) => value !== undefined);
      if (above === undefined || below === undefined || below === 0) continue;
      this.#set(attempt, name, { x, at, value: above / below }, "log");
    }
  }

  /** Writes the summaries of what was added. */
  write(): void {
    for (const state of this.#changed) {
      this.#database
        .sql(
          `UPDATE series SET count = ?, first = ?, last_x = ?, last = ?, merged = ?, least = ?,
             most = ?, non_finite = ?, mean = ?, weight = ? WHERE series_id = ?`,
        )
        .run(
          state.count,
          toPlain(state.first),
          state.lastX,
          toPlain(state.last),
          state.merged,
          state.least,
          state.most,
          state.nonFinite,
          state.mean,
          state.weight,
          state.seriesId,
        );
    }
    this.#changed.clear();
  }

  /** Adds a value to a series; returns what its last point has become. */
  #set(
    attempt: number,
    key: string,
    point: { readonly x: number; readonly at: number | null; readonly value: number },
    kind: PointKind,
  ): number {
    const { x, at } = point;
    const known = this.#find(attempt, key);
    const state = known ?? this.#insert(attempt, key, x, point.value);
    let { value } = point;
    if (known && known.lastX === x) {
      if (kind !== "log") value = merge(key, known.last, value, known.merged);
      state.merged++;
    } else if (known) {
      settle(known);
      if (known.count % pointsPerRollup === 0) this.#rollUp(known.seriesId);
      known.weight *= 2 ** (-Math.max(0, x - known.lastX) / halfLife);
      known.count++;
      known.merged = 1;
      known.lastX = x;
    }
    state.last = value;
    if (state.count === 1) state.first = value;
    this.#changed.add(state);
    this.#database
      .sql("INSERT OR REPLACE INTO points (series_id, x, at, value) VALUES (?, ?, ?, ?)")
      .run(state.seriesId, x, at, toPlain(value));
    return value;
  }

  #find(attempt: number, key: string): State | null {
    const name = `${attempt} ${key}`;
    const known = this.#states.get(name);
    if (known !== undefined) return known;
    const row = this.#database
      .sql("SELECT * FROM series WHERE log_id = ? AND key = ? AND attempt = ?")
      .first(this.#logId, key, attempt);
    const state = row
      ? {
          seriesId: Number(row["series_id"]),
          count: Number(row["count"]),
          first: toNumber(row["first"])!,
          lastX: Number(row["last_x"]),
          last: toNumber(row["last"])!,
          merged: Number(row["merged"]),
          least: row["least"] as number | null,
          most: row["most"] as number | null,
          nonFinite: Number(row["non_finite"]),
          mean: Number(row["mean"]),
          weight: Number(row["weight"]),
        }
      : null;
    this.#states.set(name, state);
    return state;
  }

  #insert(attempt: number, key: string, x: number, value: number): State {
    const row = this.#database
      .sql(
        `INSERT INTO series (log_id, attempt, key, first_x, first, last_x, last)
         VALUES (?1, ?2, ?3, ?4, ?5, ?4, ?5) RETURNING series_id`,
      )
      .first(this.#logId, attempt, key, x, toPlain(value));
    const state = {
      seriesId: Number(row?.["series_id"]),
      count: 1,
      first: value,
      lastX: x,
      last: value,
      merged: 1,
      least: null,
      most: null,
      nonFinite: 0,
      mean: 0,
      weight: 0,
    };
    this.#states.set(`${attempt} ${key}`, state);
    return state;
  }

  #rollUp(seriesId: number): void {
    const everything = Number.MAX_VALUE;
    for (let level = 1; level <= topLevel; level++) {
      const after = this.#database
        .sql("SELECT last_x FROM rollups WHERE series_id = ? AND level = ? ORDER BY x DESC LIMIT 1")
        .first(seriesId, level)?.["last_x"] as number | undefined;
      const least = level === 1 ? 1 : rollupsPerRollup;
      const range = { from: after === undefined ? -everything : nextUp(after), upTo: everything };
      if (rollUp(this.#database, seriesId, level, range, least) === 0) return;
    }
  }
}

/** Summarizes what lies within a range at the next finer level, if that is enough; returns how many summaries came. */
export function rollUp(
  database: SqlDatabase,
  seriesId: number,
  level: number,
  { from, upTo }: { readonly from: number; readonly upTo: number },
  least = 1,
): number {
  const source =
    level === 1
      ? `min(x), max(x), min(at), count(*) ${finiteValues}, min(value) ${finiteValues},
         max(value) ${finiteValues},
         max(-1.7e308, min(1.7e308, total(value) ${finiteValues})), sum(value = 'NaN'),
         sum(value = 'Infinity'), sum(value = '-Infinity')
         FROM points WHERE series_id = ?1 AND x >= ?3 AND x <= ?4`
      : `min(x), max(last_x), min(at), sum(finite), min(least),
         max(most),
         max(-1.7e308, min(1.7e308, total(total))), sum(nan), sum(plus), sum(minus)
         FROM rollups WHERE series_id = ?1 AND level = ?2 - 1 AND x >= ?3 AND last_x <= ?4`;
  return database
    .sql(
      `INSERT INTO rollups (series_id, level, x, last_x, at, finite, least, most, total, nan, plus, minus)
       SELECT ?1, ?2, ${source} HAVING count(*) >= ?5`,
    )
    .run(seriesId, level, from, upTo, least);
}

/** The next number above one. */
export function nextUp(x: number): number {
  if (!Number.isFinite(x)) return x;
  if (x === 0) return Number.MIN_VALUE;
  const bits = new BigInt64Array(new Float64Array([x]).buffer);
  bits[0]! += x > 0 ? 1n : -1n;
  return new Float64Array(bits.buffer)[0]!;
}

/** The last point will not change any more: another one follows. */
function settle(state: State): void {
  const { last } = state;
  if (!Number.isFinite(last)) {
    state.nonFinite++;
    return;
  }
  state.least = Math.min(state.least ?? last, last);
  state.most = Math.max(state.most ?? last, last);
  state.weight++;
  state.mean += clamp((last - state.mean) / state.weight);
}

/** Passes of one step become one value as the suffix of its name says. */
function merge(key: string, before: number, value: number, count: number): number {
  switch (key.slice(key.lastIndexOf(":") + 1)) {
    case "sum":
      return before + value;
    case "min":
      return Math.min(before, value);
    case "max":
      return Math.max(before, value);
    case "mean":
      return before + (value - before) / (count + 1);
    default:
      return value;
  }
}

/** The difference of the largest numbers is none that a column holds. */
function clamp(value: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));
}
