import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { isMissing } from "../errors/storage-failure.js";
import type { FileDigest, FolderFiles } from "../store/content.js";

/** The file in a folder of weights that lists its contents. */
export const manifestFile = "manifest.json";

/** The identity of a folder of weights, to recover it without a record. */
export interface StateOrigin {
  /** The path of a checkpoint, or the model of a snapshot. */
  readonly of: string;
  /** The number of operations applied to the model of a snapshot. */
  readonly applied?: number;
  /** The request that wrote it. */
  readonly request?: string;
}

/** The contents of `manifest.json`. */
export interface Manifest extends StateOrigin {
  readonly files: FolderFiles;
}

/** Records the files of a folder and their origin; returns its files, the manifest among them. */
export async function writeManifest(folder: string, origin: StateOrigin): Promise<FolderFiles> {
  const files: Record<string, FileDigest> = {};
  for (const name of (await readdir(folder)).toSorted()) {
    files[name] = await digestFile(path.join(folder, name));
  }
  const manifest: Manifest = { ...origin, files };
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  await writeFile(path.join(folder, manifestFile), text, { flush: true });
  return { ...files, [manifestFile]: await digestFile(path.join(folder, manifestFile)) };
}

/** The manifest of a folder, or undefined if it has no readable one. */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  try {
    const text = await readFile(path.join(folder, manifestFile), "utf8");
    const manifest = JSON.parse(text) as Partial<Manifest>;
    const isWhole = typeof manifest.of === "string" && typeof manifest.files === "object";
    return isWhole ? (manifest as Manifest) : undefined;
  } catch {
    return undefined;
  }
}

/** The first damaged file of a folder. */
export async function findDamage(
  folder: string,
  files: FolderFiles,
): Promise<{ file: string; problem: string } | undefined> {
  for (const [file, expected] of Object.entries(files)) {
    const problem = await problemOf(path.join(folder, file), expected);
    if (problem !== null) return { file, problem };
  }
  return undefined;
}

async function problemOf(file: string, expected: FileDigest): Promise<string | null> {
  const found = await digestFile(file).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (!found) return "is missing";
  if (found.sizeBytes !== expected.sizeBytes) {
    return `has ${found.sizeBytes} of ${expected.sizeBytes} bytes`;
  }
  return found.sha256 === expected.sha256 ? null : "does not match its SHA-256";
}

/** Bytes to read at once: every read goes through another thread, and hashing this much takes about a millisecond. */
const readBytes = 1 << 20;

async function digestFile(file: string): Promise<FileDigest> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: readBytes }), hash);
  return { sizeBytes: (await stat(file)).size, sha256: hash.digest("hex") };
}
