import path from "node:path";
import { TinkerError } from "../errors/tinker-error.js";

const plainTypes = new Set(["File", "OldFile", "ContiguousFile", "Directory"]);

/**
 * Unpacks a tar archive (packed or not) into a folder and returns the files in it. An archive is not
 * trusted: a link, a special file or a path that leads outside means that nothing is unpacked at all.
 */
export async function extractArchive(archive: string, folder: string): Promise<string[]> {
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
