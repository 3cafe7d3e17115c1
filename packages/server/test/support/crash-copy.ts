import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** Far more than things that are under way beside the event loop. */
const maxAttempts = 1000;

/** A copy of a data directory as kill -9 would leave it at this moment; `lost` are files that did not survive. */
export function crashCopy(dataDir: string, lost: readonly string[] = []): string {
  for (let attempt = 1; ; attempt++) {
    const copy = mkdtempSync(path.join(tmpdir(), "tinker-ts-crash-"));
    try {
      cpSync(dataDir, copy, {
        recursive: true,
        filter: (file) => !/(lock\.db.*|-shm)$/.test(file) && !lost.includes(path.basename(file)),
      });
      return copy;
    } catch (error) {
      rmSync(copy, { recursive: true, force: true });
      // Files are renamed and deleted by threads, which go on while they are copied.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === maxAttempts)
        throw error;
    }
  }
}
