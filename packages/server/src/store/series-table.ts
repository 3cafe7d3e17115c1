import { type Plain, type Row, type SqlDatabase, toNumber } from "./sql.js";
import { nextUp, SeriesBatch } from "./series-batch.js";

/** A metric of one attempt of a run, without its points. */
export interface SeriesRow {
  readonly seriesId: number;
  readonly attempt: number;
  readonly key: string;
  readonly count: number;
  readonly firstX: number;
  readonly lastX: number;
  readonly first: Plain;
  readonly last: Plain;
  readonly min: number | null;
  readonly max: number | null;
  readonly nonFinite: number;
  /** Mean of the last values with a half-life of ten steps. */
  readonly smoothedLast: number;
}

/** One point, or the summary of consecutive ones. */
export interface Entry {
  readonly x: number;
  readonly lastX: number;
  /** Time of the first point in milliseconds; NaN where unknown. */
  readonly at: number;
  /** Finite values. */
  readonly finite: number;
  readonly least: number;
  readonly most: number;
  readonly total: number;
  readonly nan: number;
  readonly plus: number;
  readonly minus: number;
}

/** A point as it was logged. */
export interface Point {
  readonly x: number;
  readonly value: number;
  /** Milliseconds; NaN where unknown. */
  readonly at: number;
}

/** Points with `from <= x < before`. */
export interface Range {
  readonly from: number;
  readonly before: number;
}

/** What a point takes on disk with its share of the summaries. */
const pointBytes = 32;

/**
 * Points of runs by metric and attempt.
 *
 * - The last point of a series may still change: passes of one step are merged into it. The summary columns of a
 *   series are of the points before it.
 * - Rollups are summaries of consecutive points that cannot change any more, in levels. Together with the points
 *   behind the last one they cover a series without gaps.
 */
export class SeriesTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Takes rows of points of a run within one transaction. */
  batch(logId: string): SeriesBatch {
    return new SeriesBatch(this.#database, logId);
  }

  /** Every series of a run, by key and attempt. */
  list(logId: string): SeriesRow[] {
    return this.#database
      .sql("SELECT * FROM series WHERE log_id = ? ORDER BY key, attempt")
      .all(logId)
      .map(readSeries);
  }

  /** How many summaries of a level lie within a range. */
  countRollups(seriesId: number, level: number, { from, before }: Range): number {
    const row = this.#database
      .sql(
        `SELECT count(*) AS count FROM rollups
         WHERE series_id = ? AND level = ? AND x >= ? AND last_x < ?`,
      )
      .first(seriesId, level, bounded(from), bounded(before));
    return Number(row?.["count"]);
  }

  /** The points of a range: summaries of a level, and finer ones at the ends where these do not fit. */
  entries(seriesId: number, level: number, { from, before }: Range): Entry[] {
    if (level === 0) return this.#pointEntries(seriesId, { from, before });
    const rows = this.#database
      .sql(
        `SELECT * FROM rollups WHERE series_id = ? AND level = ? AND x >= ? AND last_x < ?
         ORDER BY x`,
      )
      .all(seriesId, level, bounded(from), bounded(before))
      .map(readRollup);
    const [first] = rows;
    if (!first) return this.entries(seriesId, level - 1, { from, before });
    const end = nextUp(rows.at(-1)!.lastX);
    return [
      ...this.entries(seriesId, level - 1, { from, before: first.x }),
      ...rows,
      ...this.entries(seriesId, level - 1, { from: end, before }),
    ];
  }

  /** Points in order from an x on. */
  points(seriesId: number, from: number, limit: number): Point[] {
    return this.#database
      .sql("SELECT x, value, at FROM points WHERE series_id = ? AND x >= ? ORDER BY x LIMIT ?")
      .all(seriesId, bounded(from), limit)
      .map(readPoint);
  }

  /** The last point before an x. */
  pointBefore(seriesId: number, x: number): Point | undefined {
    const row = this.#database
      .sql("SELECT x, value, at FROM points WHERE series_id = ? AND x < ? ORDER BY x DESC LIMIT 1")
      .first(seriesId, bounded(x));
    return row && readPoint(row);
  }

  /** About how many bytes all points take. */
  sizeBytes(): number {
    return [...this.sizes().values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** About how many bytes the points of each owner take. */
  sizes(): Map<string, number> {
    const rows = this.#database
      .sql(
        `SELECT owner, sum(count) * ${pointBytes} AS bytes FROM series JOIN logs USING (log_id)
         GROUP BY owner`,
      )
      .all();
    return new Map(rows.map((row) => [row["owner"] as string, Number(row["bytes"])]));
  }

  /** Removes the points of a run. */
  remove(logId: string): void {
    for (const table of ["points", "rollups", "old_chunks"]) {
      this.#database
        .sql(
          `DELETE FROM ${table} WHERE series_id IN (SELECT series_id FROM series WHERE log_id = ?)`,
        )
        .run(logId);
    }
    this.#database.sql("DELETE FROM series WHERE log_id = ?").run(logId);
  }

  #pointEntries(seriesId: number, { from, before }: Range): Entry[] {
    return this.#database
      .sql("SELECT x, value, at FROM points WHERE series_id = ? AND x >= ? AND x < ? ORDER BY x")
      .all(seriesId, bounded(from), bounded(before))
      .map((row) => toEntry(readPoint(row)));
  }
}

/** A number that a column can be compared with. */
function bounded(x: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, x));
}

function readSeries(row: Row): SeriesRow {
  const last = row["last"] as Plain;
  const value = toNumber(last)!;
  const isFinite = Number.isFinite(value);
  const [least, most] = [row["least"] as number | null, row["most"] as number | null];
  const weight = Number(row["weight"]);
  const mean = Number(row["mean"]);
  return {
    seriesId: Number(row["series_id"]),
    attempt: Number(row["attempt"]),
    key: row["key"] as string,
    count: Number(row["count"]),
    firstX: Number(row["first_x"]),
    lastX: Number(row["last_x"]),
    first: row["first"] as Plain,
    last,
    min: isFinite ? Math.min(least ?? value, value) : least,
    max: isFinite ? Math.max(most ?? value, value) : most,
    nonFinite: Number(row["non_finite"]) + (isFinite ? 0 : 1),
    smoothedLast: isFinite ? mean + (value - mean) / (weight + 1) : weight > 0 ? mean : Number.NaN,
  };
}

function readPoint(row: Row): Point {
  return {
    x: row["x"] as number,
    value: toNumber(row["value"])!,
    at: (row["at"] as number | null) ?? Number.NaN,
  };
}

function toEntry({ x, value, at }: Point): Entry {
  const finite = Number.isFinite(value) ? 1 : 0;
  return {
    x,
    lastX: x,
    at,
    finite,
    least: finite ? value : Number.POSITIVE_INFINITY,
    most: finite ? value : Number.NEGATIVE_INFINITY,
    total: finite ? value : 0,
    nan: Number.isNaN(value) ? 1 : 0,
    plus: value === Number.POSITIVE_INFINITY ? 1 : 0,
    minus: value === Number.NEGATIVE_INFINITY ? 1 : 0,
  };
}

function readRollup(row: Row): Entry {
  return {
    x: row["x"] as number,
    lastX: row["last_x"] as number,
    at: (row["at"] as number | null) ?? Number.NaN,
    finite: row["finite"] as number,
    least: (row["least"] as number | null) ?? Number.POSITIVE_INFINITY,
    most: (row["most"] as number | null) ?? Number.NEGATIVE_INFINITY,
    total: row["total"] as number,
    nan: row["nan"] as number,
    plus: row["plus"] as number,
    minus: row["minus"] as number,
  };
}
