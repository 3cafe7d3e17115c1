import { excesses } from "./fair-level.js";
import type { SqlDatabase } from "./sql.js";

/** Rules by which answers are dropped. */
export interface RetentionRules {
  readonly now: number;
  /** How long an answer stays after it was fetched for the first time. */
  readonly fetchedGraceMs: number;
  /** How long an unfetched answer stays. */
  readonly resultTtlMs: number;
  /** Most bytes of answers kept; the oldest of the owner with the most go first. */
  readonly maxResultBytes: number;
  /** How long the record of a finished request stays: its identity and its times. */
  readonly requestRecordTtlMs: number;
  /** Most such records; the oldest go first. */
  readonly maxRequestRecords: number;
}

/** Rows handled at a time, so that a long backlog never holds the event loop. */
const batch = 1000;

interface Kept {
  readonly requestId: string;
  readonly blob: string | null;
}

/** Drops answers and, much later, the records of finished requests. */
export class RetentionTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Applies the rules; returns the blobs that are not needed any more. */
  apply(rules: RetentionRules): string[] {
    const due = [...this.#due(rules), ...this.#oversize(rules)];
    for (const { requestId } of due) this.#drop(requestId);
    this.#forget(rules);
    return due.map(({ blob }) => blob).filter((blob) => blob !== null);
  }

  /** Blobs that some row still names. */
  blobs(): Set<string> {
    const rows = this.#database
      .sql(
        `SELECT payload_blob AS blob FROM requests WHERE payload_blob IS NOT NULL
         UNION SELECT result_blob FROM requests WHERE result_blob IS NOT NULL`,
      )
      .all();
    return new Set(rows.map((row) => row["blob"] as string));
  }

  #due(rules: RetentionRules): Kept[] {
    const unfetched = this.#database
      .sql(
        `SELECT request_id, result_blob FROM requests
         WHERE state IN ('done', 'failed') AND finished_at < ? LIMIT ${batch}`,
      )
      .all(rules.now - rules.resultTtlMs);
    const fetched = this.#database
      .sql(
        `SELECT request_id, result_blob FROM requests
         WHERE state IN ('done', 'failed') AND fetched_at IS NOT NULL AND fetched_at < ?
         LIMIT ${batch}`,
      )
      .all(rules.now - rules.fetchedGraceMs);
    return [...unfetched, ...fetched].map(readKept);
  }

  /** The oldest of the owner with the most, so that one owner costs no other owner a result. */
  #oversize(rules: RetentionRules): Kept[] {
    const rows = this.#database
      .sql(
        `SELECT owner, sum(result_bytes) AS bytes FROM requests
         WHERE state IN ('done', 'failed') GROUP BY owner`,
      )
      .all();
    const sizes = new Map(rows.map((row) => [row["owner"] as string, Number(row["bytes"])]));
    return excesses(sizes, rules.maxResultBytes).flatMap(([owner, excess]) => {
      let left = excess;
      return this.#database
        .sql(
          `SELECT request_id, result_blob, result_bytes FROM requests
           WHERE state IN ('done', 'failed') AND owner = ? ORDER BY finished_at LIMIT ${batch}`,
        )
        .all(owner)
        .filter((row) => {
          const isOver = left > 0;
          left -= Number(row["result_bytes"]);
          return isOver;
        })
        .map(readKept);
    });
  }

  #forget(rules: RetentionRules): void {
    this.#database
      .sql("DELETE FROM requests WHERE state = 'gone' AND finished_at < ? AND applied IS NULL")
      .run(rules.now - rules.requestRecordTtlMs);
    const row = this.#database
      .sql("SELECT count(*) AS total FROM requests WHERE state = 'gone'")
      .first();
    const excess = Number(row?.["total"] ?? 0) - rules.maxRequestRecords;
    if (excess <= 0) return;
    this.#database
      .sql(
        `DELETE FROM requests WHERE rowid IN (SELECT rowid FROM requests
           WHERE state = 'gone' AND applied IS NULL ORDER BY finished_at LIMIT ?)`,
      )
      .run(excess);
  }

  #drop(requestId: string): void {
    this.#database
      .sql(
        `UPDATE requests SET state = 'gone', result = NULL, result_blob = NULL, result_bytes = 0,
           error = NULL WHERE request_id = ?`,
      )
      .run(requestId);
  }
}

function readKept(row: Readonly<Record<string, unknown>>): Kept {
  return {
    requestId: row["request_id"] as string,
    blob: row["result_blob"] as string | null,
  };
}
