import { stat } from "node:fs/promises";
import { isMissing } from "./json.js";

/** The size of a file, or null if there is none; links are followed. */
export async function fileSize(file: string): Promise<number | null> {
  const stats = await statIfPresent(file);
  return stats?.isFile() ? stats.size : null;
}

/** Whether there is a file; links are followed. */
export async function isFile(file: string): Promise<boolean> {
  return (await fileSize(file)) !== null;
}

/** Whether there is a folder; links are followed. */
export async function isFolder(folder: string): Promise<boolean> {
  return (await statIfPresent(folder))?.isDirectory() ?? false;
}

async function statIfPresent(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
