import type { SqlDatabase } from "./sql.js";

/** Something worth knowing later: who did what to which model or checkpoint. */
export interface AuditEntry {
  readonly at: number;
  readonly owner: string;
  /** `session.created`, `checkpoint.published` and the like. */
  readonly event: string;
  readonly modelId?: string | null;
  readonly tinkerPath?: string | null;
  readonly purpose?: string | null;
}

/** The audit log. */
export class AuditTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  add(entry: AuditEntry): void {
    this.#database
      .sql(
        `INSERT INTO audit (at, owner, event, model_id, tinker_path, purpose)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(
        entry.at,
        entry.owner,
        entry.event,
        entry.modelId ?? null,
        entry.tinkerPath ?? null,
        entry.purpose ?? null,
      );
  }

  /** Entries of a window by time; `prefix` keeps only events that begin with it. */
  list(owner: string, from: number, to: number, prefix: string): Required<AuditEntry>[] {
    return this.#database
      .sql(
        `SELECT * FROM audit WHERE owner = ? AND at >= ? AND at < ?
           AND substr(event, 1, length(?4)) = ?4 ORDER BY at, id`,
      )
      .all(owner, from, to, prefix)
      .map((row) => ({
        at: Number(row["at"]),
        owner: row["owner"] as string,
        event: row["event"] as string,
        modelId: row["model_id"] as string | null,
        tinkerPath: row["tinker_path"] as string | null,
        purpose: row["purpose"] as string | null,
      }));
  }

  prune(before: number): void {
    this.#database.sql("DELETE FROM audit WHERE at < ?").run(before);
  }
}
