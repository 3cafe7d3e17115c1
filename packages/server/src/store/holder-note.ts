import { chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";

/** The process that uses a data directory, as other processes read it. */
export interface Holder {
  readonly pid: number;
  /** A program with the engine inside, a server of its own, or the server that `local:` programs share. */
  readonly kind: "program" | "server" | "local";
  /** The version of this package. */
  readonly version: string;
  readonly device: string;
  /** Precision of base models, such as `f32`; null where each model has its own. */
  readonly weights: string | null;
  /** Its address; null until it listens, and for programs. */
  readonly url: string | null;
  /** The API key for programs of the same user; null where none is needed. */
  readonly key: string | null;
}

/** The note about the process that uses a data directory; undefined when there is none. */
export function readHolder(dataDir: string): Holder | undefined {
  try {
    const note = JSON.parse(readFileSync(noteFile(dataDir), "utf8")) as Partial<Holder>;
    if (typeof note.pid !== "number") return undefined;
    const { kind = "program", version = "", device = "cpu", weights = null } = note;
    return {
      pid: note.pid,
      kind,
      version,
      device,
      weights,
      url: note.url ?? null,
      key: note.key ?? null,
    };
  } catch {
    return undefined;
  }
}

/** Writes the note, for the user of this process alone: it may hold a key. */
export function writeHolder(dataDir: string, holder: Holder): void {
  const file = noteFile(dataDir);
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 });
  // The mode of a file that exists already stays what it was.
  chmodSync(draft, 0o600);
  renameSync(draft, file);
}

/** Where the note lies. */
export function noteFile(dataDir: string): string {
  return path.join(dataDir, "holder.json");
}
