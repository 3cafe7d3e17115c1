import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { TinkerError } from "tinker-ts/wire";
import { codeOf } from "../errors/code-of.js";
import { noteFile, readHolder, writeHolder, type Holder } from "./holder-note.js";
import { SqlDatabase } from "./sql.js";

/** Another process uses the data directory. */
export class DataDirectoryInUseError extends TinkerError {
  override readonly name = "DataDirectoryInUseError";
  readonly dataDir: string;
  /** The process that uses it, where its note could be read. */
  readonly holder: Holder | undefined;
  /** The address of that process, when it is a server that listens. */
  readonly url: string | null;

  constructor(dataDir: string, holder: Holder | undefined) {
    const who = holder ? `process ${holder.pid}` : "another process";
    super(`${dataDir} is in use by ${who}: ${remedyFor(holder)}`, {
      code: "data_directory_in_use",
    });
    this.dataDir = dataDir;
    this.holder = holder;
    this.url = holder?.url ?? null;
  }
}

function remedyFor(holder: Holder | undefined): string {
  const another =
    'or choose another data directory (dataDir, TINKER_TS_DATA_DIR; "memory" is a temporary one)';
  if (holder?.url) return `use it at ${holder.url}, stop it, ${another}`;
  return `it runs the engine itself; wait until it ends, start it without inProcess (or with TINKER_TS_STUDIO=1, to see its studio), ${another}`;
}

/**
 * One process per data directory. The lock is an open transaction on a database of its own, so the operating system
 * ends it with the process, however that ends. A note beside it describes the process for others; nothing depends on it.
 */
export class DataLock {
  readonly #database: SqlDatabase;
  readonly #dataDir: string;
  #holder: Holder;
  /** True when the process before this one did not release the lock itself. */
  readonly wasHeld: boolean;

  constructor(dataDir: string, about: Partial<Holder> = {}) {
    this.#dataDir = dataDir;
    this.#database = new SqlDatabase(path.join(dataDir, "lock.db"));
    try {
      this.#database.exec("PRAGMA busy_timeout = 0");
      this.#database.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      this.#database.close();
      if (isBusy(error)) throw new DataDirectoryInUseError(dataDir, readHolder(dataDir));
      throw error;
    }
    this.wasHeld = existsSync(noteFile(dataDir));
    const unknown = { kind: "program", version: "", device: "cpu", weights: null } as const;
    this.#holder = { ...unknown, ...about, pid: process.pid, url: null, key: null };
    writeHolder(dataDir, this.#holder);
    removeNoteAtExit(noteFile(dataDir));
  }

  /** Adds to the note where this process listens, and the key for programs of the same user. */
  announce(url: string, key: string | null = null): void {
    this.#holder = { ...this.#holder, url, key };
    writeHolder(this.#dataDir, this.#holder);
  }

  release(): void {
    const file = noteFile(this.#dataDir);
    keepNoteAtExit(file);
    rmSync(file, { force: true });
    this.#database.exec("ROLLBACK");
    this.#database.close();
  }
}

/** Notes of this process. */
const notes = new Set<string>();

/**
 * A program that ends without closing anything still ends in order: its database is closed with it, and the
 * write-ahead log is gone because everything in it was kept.
 */
function removeNoteAtExit(file: string): void {
  if (notes.size === 0) process.once("exit", removeNotes);
  notes.add(file);
}

function keepNoteAtExit(file: string): void {
  notes.delete(file);
  if (notes.size === 0) process.off("exit", removeNotes);
}

function removeNotes(): void {
  for (const file of notes) rmSync(file, { force: true });
}

function isBusy(error: unknown): boolean {
  return codeOf(error) === "SQLITE_BUSY";
}
