import { HubError } from "@tinker-ts/hub";
import * as shared from "@tinker-ts/hub/files";
import { EngineError } from "../errors.js";

// The file helpers that refuse something. Whoever calls the engine sees one kind of error for what
// lies in a folder, so their refusals become the engine's own here.

/** Reads a JSON file that must be there and must hold an object. */
export const readJsonObject: typeof shared.readJsonObject = (...args) =>
  asEngineError(() => shared.readJsonObject(...args));

/** Reads a JSON file that may be absent; null then. */
export const readJsonObjectIfPresent: typeof shared.readJsonObjectIfPresent = (...args) =>
  asEngineError(() => shared.readJsonObjectIfPresent(...args));

/** Reads the index of a model's weights: the file name of each tensor. */
export async function readWeightIndex(
  index: string,
  signal?: AbortSignal,
): Promise<Map<string, string>> {
  return asEngineError(async () =>
    shared.parseWeightIndex(index, await shared.readJsonObject(index, signal)),
  );
}

/** Writes a folder through `fill`; an existing folder is replaced only when `overwrite` allows it. */
export const writeFolderAtomically: typeof shared.writeFolderAtomically = (...args) =>
  asEngineError(() => shared.writeFolderAtomically(...args));

async function asEngineError<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (!(cause instanceof HubError)) throw cause;
    const { code, message, category } = cause;
    throw new EngineError(code, message, { category, cause });
  }
}
