import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import type { ParameterExport } from "@tinker-ts/engine";
import type { EngineKit, StoredAdapter } from "../engine-port/engine-kit.js";

/** Adapter states on disk, one folder each under a name of its own making; nothing is ever overwritten. */
export class StateFolders {
  readonly #root: string;
  readonly #loadKit: () => Promise<EngineKit>;

  constructor(root: string, loadKit: () => Promise<EngineKit>) {
    this.#root = root;
    this.#loadKit = loadKit;
  }

  /** Writes a new folder; it appears complete or not at all. */
  async write(adapter: StoredAdapter): Promise<{ folder: string; sizeBytes: number }> {
    const folder = randomBytes(12).toString("hex");
    await mkdir(this.#root, { recursive: true });
    await (await this.#loadKit()).writeAdapter(this.pathOf(folder), adapter);
    return { folder, sizeBytes: await this.#sizeOf(folder) };
  }

  /** Reads a state back; `modelFolder` is that of its base model. */
  async read(folder: string, modelFolder: string): Promise<ParameterExport> {
    return (await this.#loadKit()).readAdapter(this.pathOf(folder), modelFolder);
  }

  /** Reads an adapter that was unpacked into one of the folders and made elsewhere. */
  async readForeign(folder: string, modelFolder: string) {
    return (await this.#loadKit()).readForeignAdapter(this.pathOf(folder), modelFolder);
  }

  pathOf(folder: string): string {
    return path.join(this.#root, folder);
  }

  /** The files of a folder, in order. */
  async files(folder: string): Promise<string[]> {
    return (await readdir(this.pathOf(folder))).toSorted();
  }

  /** SHA-256 over the names and contents of a folder's files. */
  async digest(folder: string): Promise<string> {
    const hash = createHash("sha256");
    for (const file of await this.files(folder)) {
      hash.update(`${file}\n`);
      const content = createReadStream(path.join(this.pathOf(folder), file));
      await pipeline(content, hash, { end: false });
    }
    return hash.digest("hex");
  }

  async remove(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      // Unpacking that was given up can still put a file there for a moment.
      await rm(this.pathOf(folder), { recursive: true, force: true, maxRetries: 5 });
    }
  }

  /** Deletes what no record names: what a crash left behind. */
  async removeOthers(known: ReadonlySet<string>): Promise<number> {
    const present = await readdir(this.#root).catch(() => []);
    const orphans = present.filter((folder) => !known.has(folder));
    await this.remove(orphans);
    return orphans.length;
  }

  async #sizeOf(folder: string): Promise<number> {
    const sizes = await Promise.all(
      (await this.files(folder)).map((file) => stat(path.join(this.pathOf(folder), file))),
    );
    return sizes.reduce((sum, { size }) => sum + size, 0);
  }
}
