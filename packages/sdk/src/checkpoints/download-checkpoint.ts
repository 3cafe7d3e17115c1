import { mkdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";
import type { Connection } from "../session/connection.js";
import { downloadArchive, type DownloadProgress } from "./download-archive.js";
import { extractArchive } from "./extract-archive.js";

/** Where a checkpoint goes. */
export interface CheckpointTarget {
  /** The folder to make; its parents are made too. */
  readonly directory: string;
  /** Whether a folder that exists is replaced; otherwise it is an error. */
  readonly overwrite: boolean;
  readonly onProgress: (progress: DownloadProgress) => void;
}

/** A checkpoint on disk. */
export interface DownloadedCheckpoint {
  /** The folder that was made. */
  readonly directory: string;
  /** Paths below the folder. */
  readonly files: readonly string[];
  /** Size of the archive that was downloaded. */
  readonly archiveBytes: number;
}

/**
 * Downloads and unpacks a checkpoint. The folder appears as a whole or not at all: everything happens
 * in a folder beside it, which is renamed at the end and removed on failure.
 */
export async function downloadCheckpointTo(
  connection: Connection,
  getUrl: () => Promise<string>,
  target: CheckpointTarget,
  signal: AbortSignal,
): Promise<DownloadedCheckpoint> {
  const directory = path.resolve(target.directory);
  if (!target.overwrite && (await exists(directory))) {
    throw new ArgumentError(
      "directory",
      `${directory} exists already; pass overwrite: true to replace it`,
    );
  }
  const workshop = `${directory}.${crypto.randomUUID()}.part`;
  const archive = path.join(workshop, "archive.tar");
  const unpacked = path.join(workshop, "unpacked");
  await mkdir(unpacked, { recursive: true });
  try {
    const { onProgress } = target;
    const download = { connection, getUrl, file: archive, onProgress, signal };
    const archiveBytes = await downloadArchive(download);
    const files = await extractArchive(archive, unpacked);
    signal.throwIfAborted();
    await replaceFolder(directory, unpacked, path.join(workshop, "replaced"));
    return { directory, files, archiveBytes };
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

/** Puts a folder in another's place; the old one comes back when that fails. */
async function replaceFolder(target: string, replacement: string, aside: string): Promise<void> {
  const isReplaced = await exists(target);
  if (isReplaced) await rename(target, aside);
  try {
    await rename(replacement, target);
  } catch (error) {
    if (isReplaced) await rename(aside, target);
    throw error;
  }
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
