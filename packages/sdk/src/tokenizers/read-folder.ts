import { readFile } from "node:fs/promises";
import path from "node:path";
import type { ReadTokenizerFile } from "./tokenizer-files.js";

/** Reads tokenizer files from a folder. */
export function readFolder(folder: string): ReadTokenizerFile {
  return async (name) => {
    try {
      return await readFile(path.join(folder, name), "utf8");
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  };
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOENT" || error.code === "ENOTDIR")
  );
}
