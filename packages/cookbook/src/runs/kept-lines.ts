import { appendFile, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { readJsonLines, type Line } from "tinker-ts/run-log";

/** Lines that a loop stores in a file beside the log, for a resumed run. */
export class KeptLines {
  /** The lines when the file was opened, without one that a crash cut off. */
  readonly lines: readonly Line[];
  readonly #file: string;
  // Without a newline, the first new line would be appended to one that a crash cut off.
  #separator: string;

  private constructor(file: string, lines: readonly Line[], separator: string) {
    this.#file = file;
    this.lines = lines;
    this.#separator = separator;
  }

  /** Reads a file; a missing one has no lines. */
  static async open(file: string): Promise<KeptLines> {
    const { lines } = await readJsonLines(file);
    const isThere = await stat(file).catch(() => undefined);
    return new KeptLines(file, lines, isThere ? "\n" : "");
  }

  /** Appends lines; they are in the file when this resolves. */
  async append(...lines: readonly object[]): Promise<void> {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const separator = this.#separator;
    this.#separator = "";
    await mkdir(path.dirname(this.#file), { recursive: true });
    await appendFile(this.#file, separator + text);
  }
}
