import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import type { ParameterExport } from "@tinker-ts/engine";
import type { EngineKit, StoredAdapter } from "../engine-port/engine-kit.js";
import { DamagedError } from "../errors/damaged-error.js";
import { isMissing } from "../errors/storage-failure.js";
import type { FolderFiles } from "../store/content.js";
import {
  findDamage,
  readManifest,
  writeManifest,
  type Manifest,
  type StateOrigin,
} from "./manifest.js";

/** A folder on record; `files` is null if it was written before digests were stored. */
export interface KnownFolder {
  readonly folder: string;
  readonly files: FolderFiles | null;
}

/** A folder that nothing on record names. */
export interface UnknownFolder {
  readonly folder: string;
  readonly place: string;
  readonly manifest: Manifest | undefined;
}

/**
 * Adapter states on disk, one folder each under a name of its own making; nothing is ever overwritten.
 * Files are verified by their digests before reading.
 */
export class StateFolders {
  readonly #root: string;
  readonly #loadKit: () => Promise<EngineKit>;

  constructor(root: string, loadKit: () => Promise<EngineKit>) {
    this.#root = root;
    this.#loadKit = loadKit;
  }

  /** Writes a new folder; it appears complete, with its manifest, or not at all. */
  async write(
    adapter: StoredAdapter,
    origin: StateOrigin,
  ): Promise<{ folder: string; sizeBytes: number; files: FolderFiles }> {
    const folder = randomBytes(12).toString("hex");
    await mkdir(this.#root, { recursive: true });
    let files: FolderFiles = {};
    await (
      await this.#loadKit()
    ).writeAdapter(this.pathOf(folder), adapter, async (unfinished) => {
      files = await writeManifest(unfinished, origin);
    });
    return { folder, sizeBytes: await this.#sizeOf(folder), files };
  }

  /** Reads a state back; `modelFolder` is that of its base model. */
  async read(known: KnownFolder, modelFolder: string): Promise<ParameterExport> {
    await this.verify(known);
    return (await this.#loadKit()).readAdapter(this.pathOf(known.folder), modelFolder);
  }

  /** Verifies the files of a folder; throws an error that names the first damaged one. */
  async verify({ folder, files }: KnownFolder): Promise<void> {
    const damage = files && (await findDamage(this.pathOf(folder), files));
    if (!damage) return;
    const file = path.posix.join(path.basename(this.#root), folder, damage.file);
    throw new DamagedError(file, damage.problem);
  }

  /** Reads an adapter from elsewhere that was unpacked into one of the folders. */
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

  /** Deletes folders; after a crash the rest has the name of an unfinished one. */
  async remove(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      const doomed = isUnfinished(folder) ? folder : `.${folder}`;
      const isRenamed = await rename(this.pathOf(folder), this.pathOf(doomed)).then(
        () => true,
        () => false,
      );
      // Aborted unpacking can still create a file there for a moment.
      const place = this.pathOf(isRenamed ? doomed : folder);
      await rm(place, { recursive: true, force: true, maxRetries: 5 });
    }
  }

  /** Deletes unfinished folders, and lists complete ones that are not `known`. */
  async findUnknown(known: ReadonlySet<string>): Promise<UnknownFolder[]> {
    const present = await readdir(this.#root).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    const unfinished = present.filter(isUnfinished);
    await this.remove(unfinished);
    const unknown = present.filter((name) => !known.has(name) && !unfinished.includes(name));
    return Promise.all(
      unknown.map(async (folder) => {
        const place = this.pathOf(folder);
        return { folder, place, manifest: await readManifest(place) };
      }),
    );
  }

  async #sizeOf(folder: string): Promise<number> {
    const sizes = await Promise.all(
      (await this.files(folder)).map((file) => stat(path.join(this.pathOf(folder), file))),
    );
    return sizes.reduce((sum, { size }) => sum + size, 0);
  }
}

/** Folders that are being written, unpacked or deleted; a process that ends leaves them so. */
function isUnfinished(folder: string): boolean {
  return /^\.|^upload-/.test(folder);
}
