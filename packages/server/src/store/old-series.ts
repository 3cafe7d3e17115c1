import { type Plain, type Row, type SqlDatabase, toPlain } from "./sql.js";
import {
  pointsPerRollup,
  rollUp,
  rollupsPerRollup,
  SeriesBatch,
  topLevel,
  type PointKind,
} from "./series-batch.js";

/**
 * Points as servers up to schema version 9 stored them: chunks of 1024 in columns, and the last ones of each run as
 * rows of JSON.
 *
 * - Rows move when the database is opened: they are few, and new points are merged with them.
 * - Chunks move one per transaction while the server runs. The summaries of their series are complete meanwhile, and
 *   new points follow them.
 */
export class OldSeries {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
    const logs = database.sql("SELECT DISTINCT log_id FROM old_points").all();
    for (const { log_id: logId } of logs) this.#moveRows(logId as string);
  }

  /** True while chunks of a run, or of any, have not moved. */
  has(logId: string | null): boolean {
    return this.#nextChunk(logId) !== undefined;
  }

  /** Moves a chunk of a run, or of any; within a transaction. */
  moveChunk(logId: string | null): void {
    const chunk = this.#nextChunk(logId);
    if (!chunk) return;
    const chunkId = Number(chunk["chunk_id"]);
    const seriesId = Number(chunk["series_id"]);
    const columns = this.#database
      .sql("SELECT x, value, at FROM old_chunks WHERE chunk_id = ?")
      .first(chunkId)!;
    const [x, value, at] = [floats(columns["x"]), floats(columns["value"]), floats(columns["at"])];
    const insert = this.#database.sql(
      "INSERT OR IGNORE INTO points (series_id, x, at, value) VALUES (?, ?, ?, ?)",
    );
    for (let place = 0; place < x.length; place++) {
      const time = at[place]!;
      insert.run(seriesId, x[place]!, Number.isFinite(time) ? time : null, toPlain(value[place]!));
    }
    // The last point of a series may still change.
    const settled = chunk["last_x"] === x.at(-1) ? x.subarray(0, -1) : x;
    let size = pointsPerRollup;
    for (let level = 1; level <= topLevel; level++, size *= rollupsPerRollup) {
      for (let start = 0; start < settled.length; start += size) {
        const upTo = settled[Math.min(start + size, settled.length) - 1]!;
        rollUp(this.#database, seriesId, level, { from: settled[start]!, upTo });
      }
    }
    this.#database.sql("DELETE FROM old_chunks WHERE chunk_id = ?").run(chunkId);
  }

  #nextChunk(logId: string | null): Row | undefined {
    const ofLog = logId === null ? "" : "WHERE log_id = ?";
    return this.#database
      .sql(
        `SELECT chunk_id, series_id, series.last_x AS last_x
         FROM series JOIN old_chunks USING (series_id) ${ofLog} ORDER BY series_id, number LIMIT 1`,
      )
      .first(...(logId === null ? [] : [logId]));
  }

  #moveRows(logId: string): void {
    const rows = this.#database
      .sql("SELECT * FROM old_points WHERE log_id = ? ORDER BY point_id")
      .all(logId);
    this.#database.exec("BEGIN IMMEDIATE");
    const batch = new SeriesBatch(this.#database, logId);
    let steps = 0;
    for (const row of rows) {
      const [x, kind] = [Number(row["x"]), row["kind"] as PointKind];
      const values = JSON.parse(row["numbers"] as string) as Record<string, Plain>;
      batch.add({ attempt: Number(row["attempt"]), x, at: Number(row["at"]), kind, values });
      if (kind === "step") steps = Math.max(steps, x + 1);
    }
    batch.write();
    this.#database
      .sql("UPDATE logs SET steps = max(steps, ?) WHERE log_id = ? AND source = 'server'")
      .run(steps, logId);
    this.#database.sql("DELETE FROM old_points WHERE log_id = ?").run(logId);
    this.#database.exec("COMMIT");
  }
}

/** Numbers of a blob, which may begin anywhere in its memory. */
function floats(blob: unknown): Float64Array {
  return new Float64Array((blob as Uint8Array).slice().buffer);
}
