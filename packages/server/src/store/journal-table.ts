import { requestColumns, readRequest, type RequestRow } from "./requests-table.js";
import type { SqlDatabase } from "./sql.js";

/** The operations that have changed a model and that no snapshot covers: requests with an `applied`. */
export class JournalTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** The journal of a model after a point: operations to repeat, in their order. */
  list(modelId: string, afterApplied: number): RequestRow[] {
    return this.#database
      .sql(
        `SELECT ${requestColumns} FROM requests
         WHERE model_id = ? AND applied IS NOT NULL AND applied > ? ORDER BY applied`,
      )
      .all(modelId, afterApplied)
      .map(readRequest);
  }

  /** Drops the journal up to a point; returns the blobs that are not needed any more. */
  truncate(modelId: string, upToApplied: number): string[] {
    const blobs = this.#database
      .sql(
        `SELECT payload_blob FROM requests
         WHERE model_id = ? AND applied IS NOT NULL AND applied <= ? AND payload_blob IS NOT NULL`,
      )
      .all(modelId, upToApplied)
      .map((row) => row["payload_blob"] as string);
    this.#database
      .sql(
        `UPDATE requests SET payload = NULL, payload_blob = NULL, payload_bytes = 0, applied = NULL
         WHERE model_id = ? AND applied IS NOT NULL AND applied <= ?`,
      )
      .run(modelId, upToApplied);
    return blobs;
  }

  /** Drops the journals of models that have ended. */
  dropEnded(): void {
    this.#database
      .sql(
        `UPDATE requests SET payload = NULL, payload_blob = NULL, payload_bytes = 0, applied = NULL
         WHERE applied IS NOT NULL
           AND model_id IN (SELECT model_id FROM models WHERE state IN ('unloaded', 'failed'))`,
      )
      .run();
  }
}
