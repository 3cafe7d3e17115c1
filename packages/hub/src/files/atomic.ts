import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { HubError } from "../errors.js";
import { errorCode, isMissing } from "./json.js";

// Both functions follow one rule: readers of the target never see a partial state. The new state
// is built beside the target, on the same file system, brought to disk, and only then renamed. (A
// folder that replaces another is preceded by a moment without either.) Files left by a crash have
// names that start with a dot and end in `.tmp`.

/** Writes a file through `fill`; it appears under its name only when it is complete and on disk. */
export async function writeFileAtomically(
  file: string,
  fill: (temporaryFile: string) => Promise<void>,
): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const temporary = temporaryName(file);
  try {
    await fill(temporary);
    await bringToDisk(temporary);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await bringFolderToDisk(path.dirname(file));
}

/** Writes a folder through `fill`; an existing folder is replaced only when `overwrite` allows it. */
export async function writeFolderAtomically(
  folder: string,
  overwrite: boolean,
  fill: (temporaryFolder: string) => Promise<void>,
): Promise<void> {
  const target = path.resolve(folder);
  if (!overwrite) await refuseExisting(target);
  const temporary = temporaryName(target);
  await mkdir(temporary, { recursive: true });
  try {
    await fill(temporary);
    await bringTreeToDisk(temporary);
    if (overwrite) await replaceFolder(temporary, target);
    else await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    if (!overwrite && isTaken(error)) throw folderExists(target);
    throw error;
  }
  await bringFolderToDisk(path.dirname(target));
}

async function bringTreeToDisk(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const inside = path.join(folder, entry.name);
    if (entry.isDirectory()) await bringTreeToDisk(inside);
    else if (entry.isFile()) await bringToDisk(inside);
  }
  await bringFolderToDisk(folder);
}

async function bringToDisk(file: string): Promise<void> {
  const handle = await open(file, "r+");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function refuseExisting(target: string): Promise<void> {
  try {
    await stat(target);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  throw folderExists(target);
}

/** Whether a rename failed because another process has written the target meanwhile. */
function isTaken(error: unknown): boolean {
  return ["EEXIST", "ENOTEMPTY", "EPERM"].includes(errorCode(error) ?? "");
}

function folderExists(target: string): HubError {
  return new HubError(
    "folder_exists",
    `${target} exists already. Choose another folder, or pass overwrite: true to replace it.`,
  );
}

// A rename cannot replace a folder that has entries, so the old one is moved away first.
async function replaceFolder(temporary: string, target: string): Promise<void> {
  const aside = temporaryName(target);
  let movedAside = true;
  await rename(target, aside).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    movedAside = false;
  });
  try {
    await rename(temporary, target);
  } catch (error) {
    if (movedAside) await rename(aside, target);
    throw error;
  }
  await rm(aside, { recursive: true, force: true });
}

async function bringFolderToDisk(folder: string): Promise<void> {
  // Windows cannot open folders, and makes renames durable itself.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function temporaryName(target: string): string {
  const unique = `${process.pid}-${randomBytes(4).toString("hex")}`;
  return path.join(path.dirname(target), `.${path.basename(target)}.${unique}.tmp`);
}
