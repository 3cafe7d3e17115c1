import { rm, stat } from "node:fs/promises";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";
import type { Connection } from "../session/connection.js";
import { downloadFile, type DownloadProgress } from "./download-file.js";
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
  /** The folder, as an absolute path. */
  readonly directory: string;
  /** Paths below the folder. */
  readonly files: readonly string[];
  /** Size of the archive that was downloaded. */
  readonly archiveBytes: number;
}

/** Downloads and unpacks a checkpoint. The folder appears as a whole, and on disk, or not at all. */
export async function downloadCheckpointTo(
  connection: Connection,
  getUrl: () => Promise<string>,
  target: CheckpointTarget,
  signal: AbortSignal,
): Promise<DownloadedCheckpoint> {
  const { writeFolderAtomically } = await import("@tinker-ts/hub/files");
  const { overwrite, onProgress } = target;
  const directory = path.resolve(target.directory);
  if (!overwrite && (await exists(directory))) {
    throw new ArgumentError(
      "directory",
      `${directory} exists already; pass overwrite: true to replace it`,
    );
  }
  let files: readonly string[] = [];
  let archiveBytes = 0;
  await writeFolderAtomically(directory, overwrite, async (folder) => {
    const file = `${folder}.tar`;
    try {
      archiveBytes = await downloadFile({ connection, getUrl, file, onProgress, signal });
      files = await extractArchive(file, folder);
    } finally {
      await rm(file, { force: true });
    }
    signal.throwIfAborted();
  });
  return { directory, files, archiveBytes };
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
