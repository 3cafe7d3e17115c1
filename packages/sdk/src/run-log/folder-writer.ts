import { appendFile, mkdir, open, rm, writeFile } from "node:fs/promises";
import path from "node:path";

/**
 * Appends to the files of one folder.
 *
 * - Work is done one after the other, in the order in which it was asked for.
 * - The first append to a file ends a line that a crash has cut, so that what follows stays readable.
 */
export class FolderWriter {
  readonly folder: string;
  readonly #started = new Map<string, Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Appends whole lines; `durable` ones are on the disk when it resolves. */
  append(name: string, text: string, { durable = false } = {}): Promise<void> {
    return this.#inOrder(async () => {
      const file = path.join(this.folder, name);
      await this.#start(file);
      await appendFile(file, text, durable ? { flush: true } : {});
    });
  }

  /** Puts a whole file into place; a reader sees the old one or the new one, also after a power failure. */
  replace(name: string, text: string): Promise<void> {
    return this.#inOrder(async () => {
      const file = path.join(this.folder, name);
      const { writeFileAtomically } = await import("@tinker-ts/hub/files");
      await writeFileAtomically(file, (draft) => writeFile(draft, text));
    });
  }

  /** Removes files and folders. */
  remove(names: readonly string[]): Promise<void> {
    return this.#inOrder(async () => {
      for (const name of names) {
        await rm(path.join(this.folder, name), { recursive: true, force: true });
      }
    });
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #start(file: string): Promise<void> {
    const started = this.#started.get(file) ?? endCutLine(file);
    this.#started.set(file, started);
    await started;
  }
}

async function endCutLine(file: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const handle = await open(file, "a+");
  try {
    const { size } = await handle.stat();
    if (size === 0) return;
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
    if (buffer[0] !== 10) await handle.appendFile("\n");
  } finally {
    await handle.close();
  }
}
