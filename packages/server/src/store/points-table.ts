import type { Row, SqlDatabase } from "./sql.js";

/** A number, or the word for one that a row cannot hold. */
export type Plain = number | "NaN" | "Infinity" | "-Infinity";

/** How values of one x are put together: as their names say, or the last one stands. */
export type PointKind = "pass" | "forward" | "step" | "log";

/** Values at an x, as they came. */
export interface PointRow {
  readonly attempt: number;
  readonly x: number;
  readonly at: number;
  readonly kind: PointKind;
  readonly values: Readonly<Record<string, Plain>>;
}

/** What is known of a series without its points. */
export interface SeriesSummary {
  readonly first: Plain;
  readonly last: Plain;
  readonly min: number | null;
  readonly max: number | null;
  readonly nonFinite: number;
  /** State of the mean with a half-life of ten: weighted sum and weight at `lastX`. */
  readonly sum: number;
  readonly weight: number;
}

/** One metric of one attempt. */
export interface SeriesRow {
  readonly seriesId: number;
  readonly attempt: number;
  readonly key: string;
  readonly count: number;
  readonly firstX: number;
  readonly lastX: number;
  readonly summary: SeriesSummary;
}

/** What is known of a chunk without its points. */
export interface ChunkRow {
  readonly number: number;
  readonly count: number;
  readonly firstX: number;
  readonly lastX: number;
  readonly least: number | null;
  readonly most: number | null;
  readonly total: number;
  readonly finite: number;
  readonly nan: number;
  readonly plus: number;
  readonly minus: number;
}

/** The points of a chunk. */
export interface Columns {
  readonly x: Float64Array;
  readonly value: Float64Array;
  /** Milliseconds since 1970. */
  readonly at: Float64Array;
}

/** Points of runs: first as rows, then as columns. */
export class PointsTable {
  /** Grows whenever points are forgotten: the numbers of their series may come again. */
  removals = 0;
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  add(logId: string, { attempt, x, at, kind, values }: PointRow): void {
    this.#database
      .sql("INSERT INTO points (log_id, attempt, x, at, kind, numbers) VALUES (?, ?, ?, ?, ?, ?)")
      .run(logId, attempt, x, at, kind, JSON.stringify(values));
  }

  /** Rows that are not columns yet, in the order in which they came, with where to go on. */
  rows(logId: string, limit: number, after = 0): (PointRow & { readonly pointId: number })[] {
    return this.#database
      .sql("SELECT * FROM points WHERE log_id = ? AND point_id > ? ORDER BY point_id LIMIT ?")
      .all(logId, after, limit)
      .map((row) => ({
        pointId: Number(row["point_id"]),
        attempt: Number(row["attempt"]),
        x: Number(row["x"]),
        at: Number(row["at"]),
        kind: row["kind"] as PointKind,
        values: JSON.parse(row["numbers"] as string) as Record<string, Plain>,
      }));
  }

  /** Runs with many rows. */
  crowded(least: number): string[] {
    return this.#database
      .sql("SELECT log_id FROM points GROUP BY log_id HAVING count(*) >= ?")
      .all(least)
      .map((row) => row["log_id"] as string);
  }

  dropRows(logId: string, upTo: number): void {
    this.#database.sql("DELETE FROM points WHERE log_id = ? AND point_id <= ?").run(logId, upTo);
  }

  series(logId: string): SeriesRow[] {
    return this.#database
      .sql("SELECT * FROM series WHERE log_id = ? ORDER BY key, attempt")
      .all(logId)
      .map(readSeries);
  }

  insertSeries(logId: string, series: Omit<SeriesRow, "seriesId">): number {
    const { attempt, key, count, firstX, lastX, summary } = series;
    const row = this.#database
      .sql(
        `INSERT INTO series (log_id, attempt, key, count, first_x, last_x, summary)
         VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING series_id`,
      )
      .first(logId, attempt, key, count, firstX, lastX, JSON.stringify(summary));
    return Number(row?.["series_id"]);
  }

  updateSeries({ seriesId, count, firstX, lastX, summary }: SeriesRow): void {
    this.#database
      .sql("UPDATE series SET count = ?, first_x = ?, last_x = ?, summary = ? WHERE series_id = ?")
      .run(count, firstX, lastX, JSON.stringify(summary), seriesId);
  }

  chunks(seriesId: number): ChunkRow[] {
    return this.#database
      .sql(
        `SELECT number, count, first_x, last_x, least, most, total, finite, nan, plus, minus
         FROM series_chunks WHERE series_id = ? ORDER BY number`,
      )
      .all(seriesId)
      .map(readChunk);
  }

  lastChunk(seriesId: number): (ChunkRow & Columns) | undefined {
    const row = this.#database
      .sql("SELECT * FROM series_chunks WHERE series_id = ? ORDER BY number DESC LIMIT 1")
      .first(seriesId);
    return (
      row && {
        ...readChunk(row),
        x: floats(row["x"]),
        value: floats(row["value"]),
        at: floats(row["at"]),
      }
    );
  }

  /** The points of so many chunks from one on, by their numbers; times only where they are wanted. */
  columns(
    seriesId: number,
    first: number,
    count: number,
    withTimes: boolean,
  ): Map<number, Columns> {
    const rows = this.#database
      .sql(
        `SELECT number, x, value${withTimes ? ", at" : ""} FROM series_chunks
         WHERE series_id = ? AND number >= ? AND number < ?`,
      )
      .all(seriesId, first, first + count);
    return new Map(
      rows.map((row) => [
        Number(row["number"]),
        {
          x: floats(row["x"]),
          value: floats(row["value"]),
          at: withTimes ? floats(row["at"]) : noFloats,
        },
      ]),
    );
  }

  putChunk(seriesId: number, chunk: ChunkRow, columns: Columns): void {
    this.#database
      .sql(
        `INSERT INTO series_chunks (series_id, number, count, first_x, last_x, least, most, total,
           finite, nan, plus, minus, x, value, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (series_id, number) DO UPDATE SET count = excluded.count,
           first_x = excluded.first_x, last_x = excluded.last_x, least = excluded.least,
           most = excluded.most, total = excluded.total, finite = excluded.finite,
           nan = excluded.nan, plus = excluded.plus, minus = excluded.minus, x = excluded.x,
           value = excluded.value, at = excluded.at`,
      )
      .run(
        seriesId,
        chunk.number,
        chunk.count,
        chunk.firstX,
        chunk.lastX,
        chunk.least,
        chunk.most,
        chunk.total,
        chunk.finite,
        chunk.nan,
        chunk.plus,
        chunk.minus,
        bytesOf(columns.x),
        bytesOf(columns.value),
        bytesOf(columns.at),
      );
  }

  /** About how many bytes all points take. */
  sizeBytes(): number {
    return [...this.sizes().values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** How much is kept of each owner. */
  sizes(): Map<string, number> {
    const rows = this.#database
      .sql(
        `SELECT owner, sum(count) * 24 AS bytes FROM series JOIN logs USING (log_id)
         GROUP BY owner`,
      )
      .all();
    return new Map(rows.map((row) => [row["owner"] as string, Number(row["bytes"])]));
  }

  /** Forgets the points of a run. */
  remove(logId: string): void {
    this.removals++;
    this.#database
      .sql(
        `DELETE FROM series_chunks WHERE series_id IN (SELECT series_id FROM series WHERE log_id = ?)`,
      )
      .run(logId);
    this.#database.sql("DELETE FROM series WHERE log_id = ?").run(logId);
    this.#database.sql("DELETE FROM points WHERE log_id = ?").run(logId);
  }
}

const noFloats = new Float64Array(0);

function readSeries(row: Row): SeriesRow {
  return {
    seriesId: Number(row["series_id"]),
    attempt: Number(row["attempt"]),
    key: row["key"] as string,
    count: Number(row["count"]),
    firstX: Number(row["first_x"]),
    lastX: Number(row["last_x"]),
    summary: JSON.parse(row["summary"] as string) as SeriesSummary,
  };
}

function readChunk(row: Row): ChunkRow {
  return {
    number: Number(row["number"]),
    count: Number(row["count"]),
    firstX: Number(row["first_x"]),
    lastX: Number(row["last_x"]),
    least: row["least"] as number | null,
    most: row["most"] as number | null,
    total: Number(row["total"]),
    finite: Number(row["finite"]),
    nan: Number(row["nan"]),
    plus: Number(row["plus"]),
    minus: Number(row["minus"]),
  };
}

/** Numbers of a blob, which may begin anywhere in its memory. */
function floats(blob: unknown): Float64Array {
  const bytes = blob as Uint8Array;
  if (bytes.byteOffset % 8 === 0) {
    return new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
  }
  return new Float64Array(bytes.slice().buffer);
}

function bytesOf(numbers: Float64Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}
