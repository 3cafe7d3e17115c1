import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { open, readdir, readFile, unlink } from "node:fs/promises";
import path from "node:path";

/**
 * Contents too large for a row, one file each. A file is complete before the row that names it is
 * written and outlives that row by a moment at most, so a crash leaves files nobody names but never a
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
    const file = await open(path.join(this.#folder, name), "wx", 0o600);
    try {
      await file.writeFile(bytes);
      if (this.#isSynced) await file.datasync();
    } finally {
      await file.close();
    }
    return name;
  }

  read(name: string): Promise<Uint8Array> {
    return readFile(path.join(this.#folder, name));
  }

  /** Deletes files; what is already gone is fine. */
  async remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => unlink(path.join(this.#folder, name)).catch(() => {})));
  }

  /** Deletes every file whose name is not in `known`: what a crash left behind. */
  async removeOthers(known: ReadonlySet<string>): Promise<number> {
    const orphans = (await readdir(this.#folder)).filter((name) => !known.has(name));
    await this.remove(orphans);
    return orphans.length;
  }
}
