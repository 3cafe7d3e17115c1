import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { notFound } from "../errors/api-error.js";

/**
 * Opens a regular file; undefined where it is anything else. A pipe would wait for its writer, and a link that took
 * the file's place since it was looked for may lead anywhere.
 */
export async function openFile(place: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants;
  // Windows has neither flag.
  const flags = O_RDONLY | (O_NONBLOCK ?? 0) | (O_NOFOLLOW ?? 0);
  const file = await open(place, flags).catch(() => undefined);
  if (!file) return undefined;
  if ((await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}

/** All bytes of a file that was found. */
export async function readWhole(place: string): Promise<Buffer> {
  const file = await openFile(place);
  if (!file) throw notFound("file");
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
}
