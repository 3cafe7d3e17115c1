import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";

const mostLines = 1000;
const mostCharacters = 4096;

/** What was typed before, in a file that only its owner reads. */
export class LineHistory {
  /** The newest last. */
  readonly lines: readonly string[];
  readonly #file: string;
  #last: string | undefined;

  private constructor(file: string, lines: readonly string[]) {
    this.#file = file;
    this.lines = lines;
    this.#last = lines.at(-1);
  }

  /** Reads the file; one that has grown too long is cut to its newest lines. */
  static async open(file: string): Promise<LineHistory> {
    await mkdir(path.dirname(file), { recursive: true });
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    const all = text.split("\n").filter((line) => line !== "");
    const lines = all.slice(-mostLines);
    if (lines.length < all.length) {
      const { writeFileAtomically } = await import("@tinker-ts/hub/files");
      await writeFileAtomically(file, (draft) =>
        writeFile(draft, `${lines.join("\n")}\n`, { mode: 0o600 }),
      );
    }
    return new LineHistory(file, lines);
  }

  /** Adds a line; not one that was just typed, and none that nobody typed by hand. */
  async add(line: string): Promise<void> {
    if (line === this.#last || line.length > mostCharacters) return;
    this.#last = line;
    // Appending lets several programs share the file.
    await appendFile(this.#file, `${line}\n`, { mode: 0o600 });
  }
}
