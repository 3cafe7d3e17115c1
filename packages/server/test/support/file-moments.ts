import { mkdirSync, watch, type FSWatcher } from "node:fs";
import path from "node:path";

/** What a server does to its files. */
export const fileMoments = ["commit", "boot", "blobs", "checkpoints", "snapshots"] as const;

/** Sees what happens in a data directory, to act at that very moment. */
export class FileMoments {
  readonly #watchers: FSWatcher[] = [];
  readonly #waiting = new Set<(moment: string) => void>();

  constructor(dataDir: string) {
    this.#watch(dataDir, (file) => {
      if (file === "server.db-wal") return "commit";
      return file === "holder.json" ? "boot" : "";
    });
    for (const folder of ["blobs", "checkpoints", "snapshots"]) {
      mkdirSync(path.join(dataDir, folder), { recursive: true });
      this.#watch(path.join(dataDir, folder), () => folder);
    }
  }

  /** Resolves at the moment at which something happens for the `count`th time, or when it takes too long. */
  next(moment: (typeof fileMoments)[number], count: number, patienceMs: number): Promise<void> {
    return new Promise((resolve) => {
      let left = count;
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(see);
        resolve();
      };
      const see = (seen: string): void => {
        if (seen === moment && --left === 0) done();
      };
      const timer = setTimeout(done, patienceMs);
      this.#waiting.add(see);
    });
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
  }

  #watch(folder: string, momentOf: (file: string) => string): void {
    const watcher = watch(folder, (_event, file) => {
      const moment = momentOf(file ?? "");
      for (const see of this.#waiting) see(moment);
    });
    this.#watchers.push(watcher);
  }
}
