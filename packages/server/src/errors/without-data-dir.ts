import path from "node:path";

/** A message for clients: where the data directory lies is nobody's business but the operator's. */
export function withoutDataDir(message: string, dataDir: string): string {
  return message.replaceAll(`${dataDir}${path.sep}`, "").replaceAll(dataDir, "the data directory");
}
