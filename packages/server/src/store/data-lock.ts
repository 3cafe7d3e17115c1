import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { TinkerError } from "tinker-ts/wire";
import { codeOf } from "../errors/code-of.js";
import { SqlDatabase } from "./sql.js";

/** The data directory belongs to another process at the moment. */
export class DataDirectoryInUseError extends TinkerError {
  override readonly name = "DataDirectoryInUseError";
  readonly dataDir: string;
  /** Where the other process listens, when it is a server that said so. */
  readonly url: string | null;

  constructor(dataDir: string, holder: Holder | undefined) {
    const who = holder ? `process ${holder.pid}` : "another process";
    const wayOut = holder?.url
      ? `use it at ${holder.url}, stop it,`
      : "wait until it ends, share one server (tinker-ts serve),";
    super(`${dataDir} is in use by ${who}: ${wayOut} or choose another data directory`, {
      code: "data_directory_in_use",
    });
    this.dataDir = dataDir;
    this.url = holder?.url ?? null;
  }
}

interface Holder {
  readonly pid: number;
  readonly url: string | null;
}

/**
 * One process per data directory. The lock is an open transaction on a database of its own, so the
 * operating system lets go of it the moment the process dies, however it dies. A note beside it says
 * who holds it; the note is information only.
 */
export class DataLock {
  readonly #database: SqlDatabase;
  readonly #noteFile: string;
  /** The process before this one did not let go in an orderly way. */
  readonly wasHeld: boolean;

  constructor(dataDir: string) {
    this.#noteFile = path.join(dataDir, "holder.json");
    this.#database = new SqlDatabase(path.join(dataDir, "lock.db"));
    try {
      this.#database.exec("PRAGMA busy_timeout = 0");
      this.#database.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      this.#database.close();
      if (isBusy(error)) throw new DataDirectoryInUseError(dataDir, readNote(this.#noteFile));
      throw error;
    }
    this.wasHeld = existsSync(this.#noteFile);
    this.announce(null);
    noteUntilExit(this.#noteFile);
  }

  /** Leaves a note for whoever finds the directory locked. */
  announce(url: string | null): void {
    writeFileSync(this.#noteFile, JSON.stringify({ pid: process.pid, url }));
  }

  release(): void {
    forgetNote(this.#noteFile);
    rmSync(this.#noteFile, { force: true });
    this.#database.exec("ROLLBACK");
    this.#database.close();
  }
}

/** Notes of this process. */
const notes = new Set<string>();

/**
 * A program that ends without closing anything ends in an orderly way all the same: its database is closed with
 * it, and the write-ahead log is gone because everything in it was kept.
 */
function noteUntilExit(file: string): void {
  if (notes.size === 0) process.once("exit", removeNotes);
  notes.add(file);
}

function forgetNote(file: string): void {
  notes.delete(file);
  if (notes.size === 0) process.off("exit", removeNotes);
}

function removeNotes(): void {
  for (const file of notes) rmSync(file, { force: true });
}

function isBusy(error: unknown): boolean {
  return codeOf(error) === "SQLITE_BUSY";
}

function readNote(file: string): Holder | undefined {
  try {
    const note = JSON.parse(readFileSync(file, "utf8")) as Partial<Holder>;
    return typeof note.pid === "number" ? { pid: note.pid, url: note.url ?? null } : undefined;
  } catch {
    return undefined;
  }
}
