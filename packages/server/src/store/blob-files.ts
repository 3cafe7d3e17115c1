import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { open, readdir, readFile, unlink } from "node:fs/promises";
import path from "node:path";
import { isMissing } from "../errors/storage-failure.js";

/**
 * Contents too large for a row, one file each. A file is complete before the row that names it is
 * written and outlives that row by a moment at most, so a crash leaves unnamed files but never a
 * name without its file. Writing here keeps megabytes off the event loop, which a row would not.
 */
export class BlobFiles {
  readonly #folder: string;
  readonly #isSynced: boolean;

  constructor(folder: string, options: { isSynced: boolean }) {
    this.#folder = folder;
    this.#isSynced = options.isSynced;
    mkdirSync(folder, { recursive: true });
  }

  /** Writes a new file and returns its name. */
  async put(bytes: Uint8Array): Promise<string> {
    const name = randomBytes(16).toString("hex");
    const place = this.pathOf(name);
    try {
      const file = await open(place, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        if (this.#isSynced) await file.datasync();
      } finally {
        await file.close();
      }
      if (this.#isSynced) await syncFolder(this.#folder);
    } catch (error) {
      await this.remove([name]);
      throw error;
    }
    return name;
  }

  pathOf(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Deletes files; what is already gone is fine. */
  async remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => unlink(path.join(this.#folder, name)).catch(() => {})));
  }

  /** The files with names that are not in `known`. */
  async findUnknown(known: ReadonlySet<string>): Promise<string[]> {
    return (await readdir(this.#folder)).filter((name) => !known.has(name));
  }
}

/** The bytes of a file, or null when it is gone. */
export async function readBlob(place: string): Promise<Uint8Array | null> {
  try {
    return await readFile(place);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Brings the names in a folder to disk; without it, a file can be lost with all that was synced in it. */
async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open folders, and keeps their entries itself.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
