import { filesOf, type FolderFiles } from "./content.js";
import type { LoraSettings } from "./models-table.js";
import type { Row, SqlDatabase } from "./sql.js";

/** Training checkpoints can be trained on, sampler checkpoints only sampled from. */
export type CheckpointKind = "training" | "sampler";

/** Saved weights; the files are in `folder`, a name of the server's own making. */
export interface CheckpointRecord {
  readonly folder: string;
  readonly runId: string;
  readonly type: CheckpointKind;
  readonly name: string;
  readonly owner: string;
  readonly sessionId: string;
  readonly baseModel: string;
  readonly lora: LoraSettings;
  readonly hasOptimizer: boolean;
  readonly sizeBytes: number;
  /** What its files must be like; null where they were written before this was kept. */
  readonly files: FolderFiles | null;
  /** What its client said about it when it was saved. */
  readonly userMetadata: Readonly<Record<string, string>> | null;
  readonly isPublic: boolean;
  /** Made for one sampling session; not listed, and dropped when it is no longer used. */
  readonly isEphemeral: boolean;
  readonly createdAt: number;
  readonly usedAt: number;
  readonly expiresAt: number | null;
  readonly deletedAt: number | null;
}

/** Saved weights. Deleted ones stay on record for the storage bill. */
export class CheckpointsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  insert(checkpoint: CheckpointRecord): void {
    this.#database
      .sql(
        `INSERT INTO checkpoints (folder, run_id, type, name, owner, session_id, base_model, lora,
           has_optimizer, size_bytes, files, user_metadata, is_ephemeral, created_at, used_at,
           expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        checkpoint.folder,
        checkpoint.runId,
        checkpoint.type,
        checkpoint.name,
        checkpoint.owner,
        checkpoint.sessionId,
        checkpoint.baseModel,
        JSON.stringify(checkpoint.lora),
        checkpoint.hasOptimizer ? 1 : 0,
        checkpoint.sizeBytes,
        JSON.stringify(checkpoint.files),
        checkpoint.userMetadata && JSON.stringify(checkpoint.userMetadata),
        checkpoint.isEphemeral ? 1 : 0,
        checkpoint.createdAt,
        checkpoint.usedAt,
        checkpoint.expiresAt,
      );
  }

  get(runId: string, type: CheckpointKind, name: string): CheckpointRecord | undefined {
    const row = this.#database
      .sql(
        "SELECT * FROM checkpoints WHERE run_id = ? AND type = ? AND name = ? AND deleted_at IS NULL",
      )
      .first(runId, type, name);
    return row && read(row);
  }

  /** The checkpoint in a folder, unless it was deleted. */
  byFolder(folder: string): CheckpointRecord | undefined {
    const row = this.#database
      .sql("SELECT * FROM checkpoints WHERE folder = ? AND deleted_at IS NULL")
      .first(folder);
    return row && read(row);
  }

  byRun(runId: string): CheckpointRecord[] {
    return this.#database
      .sql(
        `SELECT * FROM checkpoints WHERE run_id = ? AND deleted_at IS NULL AND is_ephemeral = 0
         ORDER BY created_at DESC, name`,
      )
      .all(runId)
      .map(read);
  }

  /** A page of an owner's checkpoints, newest first. */
  byOwner(owner: string, limit: number, offset: number): CheckpointRecord[] {
    return this.#database
      .sql(
        `SELECT * FROM checkpoints WHERE owner = ? AND deleted_at IS NULL AND is_ephemeral = 0
         ORDER BY created_at DESC, run_id, name LIMIT ? OFFSET ?`,
      )
      .all(owner, limit, offset)
      .map(read);
  }

  /** How many checkpoints an owner has, and their bytes. */
  usage(owner: string): { count: number; bytes: number } {
    const row = this.#database
      .sql(
        `SELECT count(*) AS total, coalesce(sum(size_bytes), 0) AS bytes FROM checkpoints
         WHERE owner = ? AND deleted_at IS NULL AND is_ephemeral = 0`,
      )
      .first(owner);
    return { count: Number(row?.["total"]), bytes: Number(row?.["bytes"]) };
  }

  /** The largest checkpoints of an owner. */
  largest(owner: string, limit: number): CheckpointRecord[] {
    return this.#database
      .sql(
        `SELECT * FROM checkpoints WHERE owner = ? AND deleted_at IS NULL AND is_ephemeral = 0
         ORDER BY size_bytes DESC LIMIT ?`,
      )
      .all(owner, limit)
      .map(read);
  }

  /** Checkpoints of an owner that existed at some time in the window, deleted ones too. */
  within(owner: string, from: number, to: number): CheckpointRecord[] {
    return this.#database
      .sql(
        `SELECT * FROM checkpoints WHERE owner = ? AND created_at < ?
           AND (deleted_at IS NULL OR deleted_at > ?)`,
      )
      .all(owner, to, from)
      .map(read);
  }

  expired(now: number): CheckpointRecord[] {
    return this.#database
      .sql("SELECT * FROM checkpoints WHERE deleted_at IS NULL AND expires_at <= ?")
      .all(now)
      .map(read);
  }

  /** Ephemeral checkpoints, the longest unused first. */
  ephemeral(): CheckpointRecord[] {
    return this.#database
      .sql(
        "SELECT * FROM checkpoints WHERE is_ephemeral = 1 AND deleted_at IS NULL ORDER BY used_at",
      )
      .all()
      .map(read);
  }

  markDeleted(folder: string, at: number): void {
    this.#database.sql("UPDATE checkpoints SET deleted_at = ? WHERE folder = ?").run(at, folder);
  }

  markUsed(folder: string, at: number): void {
    this.#database.sql("UPDATE checkpoints SET used_at = ? WHERE folder = ?").run(at, folder);
  }

  /** Notes which file of a checkpoint is not what was written. */
  markDamaged(folder: string, damage: string): void {
    this.#database.sql("UPDATE checkpoints SET damage = ? WHERE folder = ?").run(damage, folder);
  }

  /** Whether a checkpoint of a run was found damaged. */
  isDamaged(runId: string): boolean {
    const row = this.#database
      .sql(
        `SELECT 1 FROM checkpoints
         WHERE run_id = ? AND damage IS NOT NULL AND deleted_at IS NULL LIMIT 1`,
      )
      .first(runId);
    return row !== undefined;
  }

  setPublic(folder: string, isPublic: boolean): void {
    this.#database
      .sql("UPDATE checkpoints SET is_public = ? WHERE folder = ?")
      .run(isPublic ? 1 : 0, folder);
  }

  setExpiry(folder: string, expiresAt: number | null): void {
    this.#database
      .sql("UPDATE checkpoints SET expires_at = ? WHERE folder = ?")
      .run(expiresAt, folder);
  }

  /** Whether a folder belonged to a checkpoint that was deleted. */
  isDeleted(folder: string): boolean {
    const row = this.#database
      .sql("SELECT 1 FROM checkpoints WHERE folder = ? AND deleted_at IS NOT NULL")
      .first(folder);
    return row !== undefined;
  }

  /** Folders that belong to a checkpoint that still exists. */
  folders(): Set<string> {
    const rows = this.#database
      .sql("SELECT folder FROM checkpoints WHERE deleted_at IS NULL")
      .all();
    return new Set(rows.map((row) => row["folder"] as string));
  }

  prune(deletedBefore: number): void {
    this.#database.sql("DELETE FROM checkpoints WHERE deleted_at < ?").run(deletedBefore);
  }
}

function read(row: Row): CheckpointRecord {
  return {
    folder: row["folder"] as string,
    runId: row["run_id"] as string,
    type: row["type"] as CheckpointKind,
    name: row["name"] as string,
    owner: row["owner"] as string,
    sessionId: row["session_id"] as string,
    baseModel: row["base_model"] as string,
    lora: JSON.parse(row["lora"] as string) as LoraSettings,
    hasOptimizer: row["has_optimizer"] === 1,
    sizeBytes: Number(row["size_bytes"]),
    files: filesOf(row),
    userMetadata: JSON.parse((row["user_metadata"] as string | null) ?? "null") as Record<
      string,
      string
    > | null,
    isPublic: row["is_public"] === 1,
    isEphemeral: row["is_ephemeral"] === 1,
    createdAt: Number(row["created_at"]),
    usedAt: Number(row["used_at"]),
    expiresAt: row["expires_at"] as number | null,
    deletedAt: row["deleted_at"] as number | null,
  };
}
