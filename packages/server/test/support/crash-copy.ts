import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** A copy of a data directory as kill -9 would leave it at this moment; `lost` are files that did not survive. */
export function crashCopy(dataDir: string, lost: readonly string[] = []): string {
  const copy = mkdtempSync(path.join(tmpdir(), "tinker-ts-crash-"));
  cpSync(dataDir, copy, {
    recursive: true,
    filter: (file) => !/(lock\.db.*|-shm)$/.test(file) && !lost.includes(path.basename(file)),
  });
  return copy;
}
