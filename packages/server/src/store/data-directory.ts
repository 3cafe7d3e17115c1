import { existsSync, mkdirSync, statSync } from "node:fs";
import path from "node:path";
import { TinkerError } from "tinker-ts/wire";

/** Makes the data directory, readable by its owner alone, and the folders above it; one that cannot be is refused. */
export function makeDataDirectory(folder: string): void {
  try {
    makeFolder(path.resolve(folder));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TinkerError(
      `The data directory ${folder} cannot be made: ${reason}; choose another with TINKER_TS_DATA_DIR, dataDir or --data`,
      { code: "data_directory_unusable", cause },
    );
  }
}

// One by one: where a folder is there and takes no others, as in /proc, Node's recursive mkdir tries for ever.
function makeFolder(folder: string): void {
  if (existsSync(folder) && statSync(folder).isDirectory()) return;
  const parent = path.dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(folder) || !statSync(folder).isDirectory()) throw error;
  }
}
