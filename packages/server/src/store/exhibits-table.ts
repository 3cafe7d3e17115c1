import type { Content } from "./content.js";
import type { Row, SqlDatabase } from "./sql.js";

/** What an exhibit is: an example trained on, a rollout, an answer. */
export type ExhibitKind = "datum" | "rollout" | "sample";

/** Exhibits that came together; what lists show of each is in `heads`, everything in the content. */
export interface ExhibitBatch {
  readonly exhibitId: number;
  readonly logId: string;
  readonly modelId: string | null;
  readonly step: number;
  readonly kind: ExhibitKind;
  readonly split: string;
  /** Of how many these were chosen. */
  readonly seen: number | null;
  readonly at: number;
  /** JSON text. */
  readonly heads: string;
  readonly content: Content;
}

/** Data, rollouts and samples that are kept to be looked at. */
export class ExhibitsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert(batch: Omit<ExhibitBatch, "exhibitId">): void {
    const { content } = batch;
    this.#database
      .sql(
        `INSERT INTO exhibits (log_id, model_id, step, kind, split, seen, at, heads, content,
           content_blob, content_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        batch.logId,
        batch.modelId,
        batch.step,
        batch.kind,
        batch.split,
        batch.seen,
        batch.at,
        batch.heads,
        content.inline,
        content.blob,
        content.sizeBytes,
      );
  }

  /** All batches of a step. */
  byStep(logId: string, kind: ExhibitKind, step: number): ExhibitBatch[] {
    return this.#database
      .sql("SELECT * FROM exhibits WHERE log_id = ? AND kind = ? AND step = ? ORDER BY exhibit_id")
      .all(logId, kind, step)
      .map(read);
  }

  get(exhibitId: number): ExhibitBatch | undefined {
    const row = this.#database.sql("SELECT * FROM exhibits WHERE exhibit_id = ?").first(exhibitId);
    return row && read(row);
  }

  /** Steps with exhibits, ascending. */
  steps(logId: string, kind: ExhibitKind): number[] {
    return this.#database
      .sql("SELECT DISTINCT step FROM exhibits WHERE log_id = ? AND kind = ? ORDER BY step")
      .all(logId, kind)
      .map((row) => Number(row["step"]));
  }

  splits(logId: string, kind: ExhibitKind): string[] {
    return this.#database
      .sql("SELECT DISTINCT split FROM exhibits WHERE log_id = ? AND kind = ? ORDER BY split")
      .all(logId, kind)
      .map((row) => row["split"] as string);
  }

  /** Files that some row names. */
  files(): Set<string> {
    const rows = this.#database
      .sql("SELECT content_blob FROM exhibits WHERE content_blob IS NOT NULL")
      .all();
    return new Set(rows.map((row) => row["content_blob"] as string));
  }

  sizeBytes(): number {
    return [...this.sizes().values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** How much is kept of each owner. */
  sizes(): Map<string, number> {
    const rows = this.#database
      .sql(
        `SELECT owner, sum(content_bytes) AS bytes FROM exhibits JOIN logs USING (log_id)
         GROUP BY owner`,
      )
      .all();
    return new Map(rows.map((row) => [row["owner"] as string, Number(row["bytes"])]));
  }

  /**
   * Drops the oldest of an owner's runs that are not pinned until this much is gone; returns files that are
   * not needed any more.
   */
  dropOldest(owner: string, bytes: number): string[] {
    const rows = this.#database
      .sql(
        `SELECT exhibit_id, content_blob, content_bytes FROM exhibits
         WHERE log_id IN (SELECT log_id FROM logs WHERE owner = ? AND is_pinned = 0)
         ORDER BY exhibit_id LIMIT 1000`,
      )
      .all(owner);
    let left = bytes;
    const blobs: string[] = [];
    for (const row of rows) {
      if (left <= 0) break;
      left -= Number(row["content_bytes"]);
      this.#database
        .sql("DELETE FROM exhibits WHERE exhibit_id = ?")
        .run(Number(row["exhibit_id"]));
      if (row["content_blob"] !== null) blobs.push(row["content_blob"] as string);
    }
    return blobs;
  }

  /** Forgets the exhibits of a run; returns files that are not needed any more. */
  remove(logId: string): string[] {
    return this.#database
      .sql("DELETE FROM exhibits WHERE log_id = ? RETURNING content_blob")
      .all(logId)
      .flatMap((row) => (row["content_blob"] as string | null) ?? []);
  }
}

function read(row: Row): ExhibitBatch {
  return {
    exhibitId: Number(row["exhibit_id"]),
    logId: row["log_id"] as string,
    modelId: row["model_id"] as string | null,
    step: Number(row["step"]),
    kind: row["kind"] as ExhibitKind,
    split: row["split"] as string,
    seen: row["seen"] as number | null,
    at: Number(row["at"]),
    heads: row["heads"] as string,
    content: {
      inline: row["content"] as Uint8Array | null,
      blob: row["content_blob"] as string | null,
      sizeBytes: Number(row["content_bytes"]),
    },
  };
}
