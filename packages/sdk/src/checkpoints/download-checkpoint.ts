import { ArgumentError } from "../errors/argument-error.js";
import { TinkerError } from "../errors/tinker-error.js";
import type { Connection } from "../session/connection.js";
import { downloadFile, type DownloadProgress } from "./download-file.js";
import { rm, stat } from "node:fs/promises";
import path from "node:path";

/** Where a checkpoint goes. */
export interface CheckpointTarget {
  /** The folder to make; its parents are made too. */
  readonly directory: string;
  /** Replaces a folder that exists; without it that is an error. */
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

const plainTypes = new Set(["File", "OldFile", "ContiguousFile", "Directory"]);

/**
 * Unpacks a tar archive (packed or not) into a folder and returns the files in it. An archive is not
 * trusted: a link, a special file or a path that leads outside means that nothing is unpacked at all.
 */
async function extractArchive(archive: string, folder: string): Promise<string[]> {
  const tar = await import("tar");
  const files: string[] = [];
  let problem: string | undefined;
  try {
    await tar.t({
      file: archive,
      strict: true,
      onReadEntry: (entry) => {
        if (!plainTypes.has(entry.type)) problem ??= `${entry.path} is a ${entry.type}`;
        else if (!isInside(entry.path)) problem ??= `${entry.path} leads outside`;
        else if (entry.type !== "Directory") files.push(entry.path);
      },
    });
    if (problem === undefined) await tar.x({ file: archive, cwd: folder, strict: true });
  } catch (cause) {
    throw refused("it is damaged", cause);
  }
  if (problem !== undefined) throw refused(problem);
  return files;
}

function isInside(entryPath: string): boolean {
  if (entryPath.includes("\\") || path.posix.isAbsolute(entryPath) || /^[a-z]:/i.test(entryPath)) {
    return false;
  }
  return !entryPath.split("/").includes("..");
}

function refused(problem: string, cause?: unknown): TinkerError {
  return new TinkerError(`The checkpoint archive was not unpacked: ${problem}.`, {
    code: "bad_archive",
    cause,
  });
}
