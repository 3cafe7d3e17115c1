import { filesOf, type FolderFiles } from "./content.js";
import type { Row, SqlDatabase } from "./sql.js";

/** A model's whole state on disk, after `applied` operations. */
export interface SnapshotRecord {
  readonly modelId: string;
  readonly applied: number;
  readonly folder: string;
  /** What its files must be like; one that is not is not used. */
  readonly files: FolderFiles | null;
  readonly sizeBytes: number;
  readonly createdAt: number;
}

/** Snapshots of live models. */
export class SnapshotsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert(snapshot: SnapshotRecord): void {
    this.#database
      .sql(
        `INSERT OR REPLACE INTO snapshots (model_id, applied, folder, files, size_bytes, created_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(
        snapshot.modelId,
        snapshot.applied,
        snapshot.folder,
        JSON.stringify(snapshot.files),
        snapshot.sizeBytes,
        snapshot.createdAt,
      );
  }

  /** Newest first. */
  list(modelId: string): SnapshotRecord[] {
    return this.#database
      .sql("SELECT * FROM snapshots WHERE model_id = ? ORDER BY applied DESC")
      .all(modelId)
      .map(read);
  }

  /** Forgets snapshots older than `applied`; returns their folders. */
  removeBefore(modelId: string, applied: number): string[] {
    return this.#database
      .sql("DELETE FROM snapshots WHERE model_id = ? AND applied < ? RETURNING folder")
      .all(modelId, applied)
      .map((row) => row["folder"] as string);
  }

  /** Forgets the snapshots of models that have ended. */
  removeEnded(): void {
    this.#database
      .sql(
        `DELETE FROM snapshots
         WHERE model_id IN (SELECT model_id FROM models WHERE state IN ('unloaded', 'failed'))`,
      )
      .run();
  }

  folders(): Set<string> {
    const rows = this.#database.sql("SELECT folder FROM snapshots").all();
    return new Set(rows.map((row) => row["folder"] as string));
  }
}

function read(row: Row): SnapshotRecord {
  return {
    modelId: row["model_id"] as string,
    applied: Number(row["applied"]),
    folder: row["folder"] as string,
    files: filesOf(row),
    sizeBytes: Number(row["size_bytes"]),
    createdAt: Number(row["created_at"]),
  };
}
