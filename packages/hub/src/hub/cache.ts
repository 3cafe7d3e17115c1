import { copyFile, link, mkdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { writeFileAtomically } from "../files/atomic.js";
import { readJsonObject, readTextIfPresent } from "../files/json.js";
import { isFile } from "../files/paths.js";
import { parseWeightIndex, singleWeightsFile, weightIndexFile } from "../files/weight-index.js";
import type { HubFiles } from "./files.js";

/** Kinds of repositories on the hub. */
export type RepositoryKind = "model" | "dataset";

/**
 * One repository's folder in the cache shared with Hugging Face's tools:
 *
 * - `blobs/ETAG`: contents, `ETAG.incomplete` while they arrive;
 * - `snapshots/COMMIT/NAME`: links to blobs, the folder that is used;
 * - `refs/REVISION`: the commit of a branch or tag at the last request;
 * - `.no_exist/COMMIT/NAME`: an empty file for each file that is known to be absent from the commit.
 */
export class RepositoryCache {
  readonly folder: string;

  constructor(cacheFolder: string, id: string, kind: RepositoryKind = "model") {
    this.folder = path.join(cacheFolder, `${kind}s--${id.replaceAll("/", "--")}`);
  }

  /** The path of a blob. */
  blob(etag: string): string {
    return path.join(this.folder, "blobs", etag);
  }

  /** The folder of one commit's files. */
  snapshot(commit: string): string {
    return path.join(this.folder, "snapshots", commit);
  }

  /** The cached commit of a revision, or null. */
  async commitOf(revision: string): Promise<string | null> {
    if (isCommit(revision)) return revision;
    const text = await readTextIfPresent(path.join(this.folder, "refs", revision));
    return text?.trim() || null;
  }

  /** Records the commit of a branch or tag. */
  async rememberCommit(revision: string, commit: string): Promise<void> {
    if (isCommit(revision)) return;
    const file = path.join(this.folder, "refs", revision);
    await writeFileAtomically(file, (temporary) => writeFile(temporary, commit));
  }

  /** Records that a commit does not have a file, so that it is not requested again. */
  async rememberAbsent(commit: string, name: string): Promise<void> {
    const file = this.#absenceNote(commit, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, "");
  }

  /** The needed files that a snapshot lacks. */
  async missingFiles(commit: string, files: HubFiles): Promise<string[]> {
    const needed = await this.#neededFiles(commit, files);
    const missing: string[] = [];
    for (const name of needed) {
      if (!(await isFile(path.join(this.snapshot(commit), name)))) missing.push(name);
    }
    return missing;
  }

  /** Makes a blob appear under its name in a snapshot. */
  async addToSnapshot(commit: string, name: string, etag: string): Promise<void> {
    const file = path.join(this.snapshot(commit), name);
    const blob = this.blob(etag);
    const target = path.relative(path.dirname(file), blob);
    await mkdir(path.dirname(file), { recursive: true });
    if ((await readlink(file).catch(() => null)) === target) return;
    await rm(file, { force: true });
    try {
      await symlink(target, file);
    } catch {
      // Windows restricts symbolic links; hard links need one file system, copies need more space.
      await link(blob, file).catch(() => copyFile(blob, file));
    }
  }

  async #neededFiles(commit: string, files: HubFiles): Promise<string[]> {
    if (files === "tokenizer") return ["tokenizer.json"];
    const noTokenizer = await isFile(this.#absenceNote(commit, "tokenizer.json"));
    const needed = noTokenizer ? ["config.json"] : ["config.json", "tokenizer.json"];
    const folder = this.snapshot(commit);
    const index = path.join(folder, weightIndexFile);
    const isSingle = await isFile(path.join(folder, singleWeightsFile));
    if (isSingle || !(await isFile(index))) return [...needed, singleWeightsFile];
    const shards = parseWeightIndex(index, await readJsonObject(index)).values();
    return [...needed, ...new Set(shards)];
  }

  #absenceNote(commit: string, name: string): string {
    return path.join(this.folder, ".no_exist", commit, name);
  }
}

function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/.test(revision);
}
