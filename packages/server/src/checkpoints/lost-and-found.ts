import { mkdir, rename } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "../log/logger.js";
import type { Store } from "../store/store.js";

/** The folder in the data directory for files without a record. */
export const lostAndFound = "lost-and-found";

/** Keeps files of the data directory without a record; nothing in it is ever deleted here. */
export class LostAndFound {
  readonly #root: string;
  readonly #logger: Logger;

  constructor({ store, logger }: { readonly store: Store; readonly logger: Logger }) {
    this.#root = path.join(store.dataDir, lostAndFound);
    this.#logger = logger;
  }

  /** Moves a file or folder there; `what` describes it. */
  async keep(
    kind: "checkpoints" | "snapshots" | "blobs",
    place: string,
    what: string,
  ): Promise<void> {
    const name = path.basename(place);
    await mkdir(path.join(this.#root, kind), { recursive: true, mode: 0o700 });
    await rename(place, path.join(this.#root, kind, name));
    const folder = path.join(lostAndFound, kind, name);
    this.#logger.warn("found what no record names; moved it to lost-and-found", { folder, what });
  }
}
