import { AuditTable } from "./audit-table.js";
import { BlobFiles } from "./blob-files.js";
import { CheckpointsTable } from "./checkpoints-table.js";
import { makeDataDirectory } from "./data-directory.js";
import { DataLock } from "./data-lock.js";
import type { Holder } from "./holder-note.js";
import { ExhibitsTable } from "./exhibits-table.js";
import { GroupCommit } from "./group-commit.js";
import { JournalTable } from "./journal-table.js";
import { LinesTable } from "./lines-table.js";
import { LogsTable } from "./logs-table.js";
import { ModelsTable } from "./models-table.js";
import { OldSeries } from "./old-series.js";
import { RequestsTable } from "./requests-table.js";
import { RetentionTable } from "./retention-table.js";
import { SamplersTable } from "./samplers-table.js";
import { migrate } from "./schema.js";
import { SeriesTable } from "./series-table.js";
import { SessionsTable } from "./sessions-table.js";
import { SnapshotsTable } from "./snapshots-table.js";
import { SqlDatabase } from "./sql.js";
import { UsageTable } from "./usage-table.js";
import { chmodSync, statSync } from "node:fs";
import path from "node:path";

/**
 * What a crash may cost.
 *
 * - `process`: nothing when the process dies; the last moments when the machine loses power
 * - `power`: nothing either way; every commit waits for the disk
 */
export type Durability = "process" | "power";

/** The data directory: one database, the blob files beside it, and the lock on both. */
export class Store {
  readonly dataDir: string;
  readonly lock: DataLock;
  readonly blobs: BlobFiles;
  readonly sessions: SessionsTable;
  readonly models: ModelsTable;
  readonly snapshots: SnapshotsTable;
  readonly samplers: SamplersTable;
  readonly requests: RequestsTable;
  readonly journal: JournalTable;
  readonly retention: RetentionTable;
  readonly checkpoints: CheckpointsTable;
  readonly usage: UsageTable;
  readonly audit: AuditTable;
  readonly settings: SettingsTable;
  readonly logs: LogsTable;
  readonly lines: LinesTable;
  readonly series: SeriesTable;
  readonly oldSeries: OldSeries;
  readonly exhibits: ExhibitsTable;
  /** What is kept of exhibits; to lose some of it is no harm. */
  readonly exhibitFiles: BlobFiles;
  /**
   * The write-ahead log of a process that was killed is gone: its last commits are lost, and what is on
   * disk may be known to no row any more.
   */
  readonly isCutOff: boolean;
  readonly #database: SqlDatabase;
  readonly #commits: GroupCommit;

  constructor(
    dataDir: string,
    options: { readonly durability: Durability; readonly holder?: Partial<Holder> },
  ) {
    makeDataDirectory(dataDir);
    this.dataDir = dataDir;
    this.lock = new DataLock(dataDir, options.holder);
    const isSynced = options.durability === "power";
    this.isCutOff = this.lock.wasHeld && isEmpty(path.join(dataDir, "server.db-wal"));
    try {
      this.#database = openDatabase(path.join(dataDir, "server.db"), isSynced);
    } catch (error) {
      this.lock.release();
      throw error;
    }
    this.#commits = new GroupCommit(this.#database);
    this.blobs = new BlobFiles(path.join(dataDir, "blobs"), { isSynced });
    this.sessions = new SessionsTable(this.#database);
    this.models = new ModelsTable(this.#database);
    this.snapshots = new SnapshotsTable(this.#database);
    this.samplers = new SamplersTable(this.#database);
    this.requests = new RequestsTable(this.#database);
    this.journal = new JournalTable(this.#database);
    this.retention = new RetentionTable(this.#database);
    this.checkpoints = new CheckpointsTable(this.#database);
    this.usage = new UsageTable(this.#database);
    this.audit = new AuditTable(this.#database);
    this.settings = new SettingsTable(this.#database);
    this.logs = new LogsTable(this.#database);
    this.lines = new LinesTable(this.#database);
    this.series = new SeriesTable(this.#database);
    this.oldSeries = new OldSeries(this.#database);
    this.exhibits = new ExhibitsTable(this.#database);
    this.exhibitFiles = new BlobFiles(path.join(dataDir, "exhibits"), { isSynced: false });
  }

  /** Runs `action` in the next transaction; resolves when that is committed. */
  write<T>(action: () => T): Promise<T> {
    return this.#commits.write(action);
  }

  /** Commits what is queued and lets go of the directory. */
  async close(): Promise<void> {
    await this.#commits.flush();
    this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#database.close();
    this.lock.release();
  }
}

/** Opens the database; where it is synced, every commit waits for the disk. */
export function openDatabase(file: string, isSynced: boolean): SqlDatabase {
  const database = new SqlDatabase(file);
  // It holds the secret that tokens and links are signed with.
  chmodSync(file, 0o600);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec(`PRAGMA synchronous = ${isSynced ? "FULL" : "NORMAL"}`);
  migrate(database);
  return database;
}

function isEmpty(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Small facts the server keeps about itself. */
class SettingsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** The value of a setting; `make` decides it the first time. */
  getOrMake(name: string, make: () => string): string {
    const row = this.#database.sql("SELECT value FROM settings WHERE name = ?").first(name);
    if (row) return row["value"] as string;
    const value = make();
    this.#database.sql("INSERT INTO settings (name, value) VALUES (?, ?)").run(name, value);
    return value;
  }
}
