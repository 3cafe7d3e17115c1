import { HubError } from "../errors.js";
import * as atomic from "../files/atomic.js";
import * as json from "../files/json.js";
import { parseWeightIndex } from "../files/weight-index.js";
import { EngineError } from "./engine-error.js";

// The file helpers with the errors of this folder, so that callers handle one kind of error.

/** Reads a JSON file that must exist and hold an object. */
export const readJsonObject: typeof json.readJsonObject = (...args) =>
  asEngineError(() => json.readJsonObject(...args));

/** Reads a JSON file; null if it does not exist. */
export const readJsonObjectIfPresent: typeof json.readJsonObjectIfPresent = (...args) =>
  asEngineError(() => json.readJsonObjectIfPresent(...args));

/** Reads the index of a model's weights: the file name of each tensor. */
export async function readWeightIndex(
  index: string,
  signal?: AbortSignal,
): Promise<Map<string, string>> {
  return asEngineError(async () =>
    parseWeightIndex(index, await json.readJsonObject(index, signal)),
  );
}

/** Writes a folder through `fill`; an existing folder is replaced only when `overwrite` allows it. */
export const writeFolderAtomically: typeof atomic.writeFolderAtomically = (...args) =>
  asEngineError(() => atomic.writeFolderAtomically(...args));

async function asEngineError<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof HubError)) throw cause;
    const { code, message, category } = cause;
    throw new EngineError(code, message, { category, cause });
  }
}
