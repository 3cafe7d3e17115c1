import type { Row, SqlDatabase } from "./sql.js";

/** A sampling session: fixed weights that requests can be addressed to. */
export interface Sampler {
  readonly samplerId: string;
  readonly sessionId: string;
  readonly owner: string;
  readonly baseModel: string;
  /** The checkpoint it samples from; null for the bare base model. */
  readonly modelPath: string | null;
  readonly createdAt: number;
}

/** Sampling sessions. */
export class SamplersTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert(sampler: Sampler): void {
    this.#database
      .sql(
        `INSERT INTO samplers (sampler_id, session_id, owner, base_model, model_path, created_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(
        sampler.samplerId,
        sampler.sessionId,
        sampler.owner,
        sampler.baseModel,
        sampler.modelPath,
        sampler.createdAt,
      );
  }

  get(samplerId: string): Sampler | undefined {
    const row = this.#database.sql("SELECT * FROM samplers WHERE sampler_id = ?").first(samplerId);
    return row && read(row);
  }

  /** Counts one more client of a sampler; returns its number, which is 0 for its maker. */
  join(samplerId: string): number {
    const row = this.#database
      .sql("UPDATE samplers SET joined = joined + 1 WHERE sampler_id = ? RETURNING joined")
      .first(samplerId);
    return Number(row?.["joined"]);
  }

  /** True when another client than its maker has joined a sampler. */
  isJoined(samplerId: string): boolean {
    const row = this.#database
      .sql("SELECT 1 FROM samplers WHERE sampler_id = ? AND joined > 0")
      .first(samplerId);
    return row !== undefined;
  }

  /** True when a sampler of a session has been joined. */
  hasJoined(sessionId: string): boolean {
    const row = this.#database
      .sql("SELECT 1 FROM samplers WHERE session_id = ? AND joined > 0 LIMIT 1")
      .first(sessionId);
    return row !== undefined;
  }

  bySession(sessionId: string): Sampler[] {
    return this.#database
      .sql("SELECT * FROM samplers WHERE session_id = ? ORDER BY created_at, sampler_id")
      .all(sessionId)
      .map(read);
  }

  /** Samplers of open sessions. */
  inUse(): Sampler[] {
    return this.#database
      .sql(
        `SELECT samplers.* FROM samplers JOIN sessions USING (session_id) WHERE closed_at IS NULL`,
      )
      .all()
      .map(read);
  }

  /** Forgets the samplers of sessions that are no longer on record. */
  prune(): void {
    this.#database
      .sql("DELETE FROM samplers WHERE session_id NOT IN (SELECT session_id FROM sessions)")
      .run();
  }
}

function read(row: Row): Sampler {
  return {
    samplerId: row["sampler_id"] as string,
    sessionId: row["session_id"] as string,
    owner: row["owner"] as string,
    baseModel: row["base_model"] as string,
    modelPath: row["model_path"] as string | null,
    createdAt: Number(row["created_at"]),
  };
}
