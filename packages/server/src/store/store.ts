import { AuditTable } from "./audit-table.js";
import { BlobFiles } from "./blob-files.js";
import { CheckpointsTable } from "./checkpoints-table.js";
import { makeDataDirectory } from "./data-directory.js";
import { DataLock } from "./data-lock.js";
import type { Holder } from "./holder-note.js";
import { ExhibitsTable } from "./exhibits-table.js";
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

  /** Commits what is queued and releases the directory. */
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

interface Action {
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Longest time one transaction may hold the event loop before it commits what it has. */
const budgetMs = 8;

/** Most writes in one transaction: all their answers are made in the turn that follows its commit. */
const maxActions = 64;

/**
 * Writes of one turn of the event loop share one transaction, so that thousands of acknowledgements
 * cost a handful of commits.
 *
 * - A write's promise resolves only after its commit: what was acknowledged is on disk.
 * - Actions run one after the other in the order of the calls; each sees what those before it wrote.
 * - An action that throws is undone alone; the others of its transaction stand.
 * - A commit that fails rejects every action of its transaction.
 */
export class GroupCommit {
  readonly #database: SqlDatabase;
  #queue: Action[] = [];
  #isScheduled = false;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Runs `action` inside the next transaction, which comes at the end of this turn. */
  write<T>(action: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (value: unknown): void => resolve(value as T);
      this.#queue.push({ run: action, resolve: settle, reject });
      this.#schedule();
    });
  }

  /** Resolves when everything written so far is committed. */
  async flush(): Promise<void> {
    await this.write(() => {});
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#commit();
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #commit(): void {
    const deadline = performance.now() + budgetMs;
    const settled: (() => void)[] = [];
    const taken: Action[] = [];
    try {
      this.#do("BEGIN IMMEDIATE");
      const isAlone = this.#queue.length === 1;
      while (taken.length < Math.min(this.#queue.length, maxActions)) {
        if (taken.length > 0 && performance.now() > deadline) break;
        const action = this.#queue[taken.length]!;
        taken.push(action);
        settled.push(isAlone ? this.#runAlone(action) : this.#run(action));
        if (isAlone) break;
      }
      this.#do("COMMIT");
    } catch (error) {
      this.#rollback();
      for (const action of taken) action.reject(error);
      settled.length = 0;
      if (taken.length === 0) this.#queue.shift()?.reject(error);
    }
    this.#queue.splice(0, taken.length);
    for (const settle of settled) settle();
  }

  /** Runs one action under a savepoint; returns a function that settles it once the transaction has committed. */
  #run(action: Action): () => void {
    this.#do("SAVEPOINT action");
    try {
      const value = action.run();
      this.#do("RELEASE action");
      return () => action.resolve(value);
    } catch (error) {
      this.#do("ROLLBACK TO action");
      this.#do("RELEASE action");
      return () => action.reject(error);
    }
  }

  /** Runs the only action of a transaction, which is undone when that throws. */
  #runAlone(action: Action): () => void {
    const value = action.run();
    return () => action.resolve(value);
  }

  /** A statement of the transaction itself; parsed once, because every write needs two of them. */
  #do(text: string): void {
    this.#database.sql(text).run();
  }

  #rollback(): void {
    try {
      this.#do("ROLLBACK");
    } catch {
      // The transaction was already undone by the failure itself.
    }
  }
}
