import path from "node:path";

/** A message for clients: the path of the data directory is for the operator only. */
export function withoutDataDir(message: string, dataDir: string): string {
  return message.replaceAll(`${dataDir}${path.sep}`, "").replaceAll(dataDir, "the data directory");
}
