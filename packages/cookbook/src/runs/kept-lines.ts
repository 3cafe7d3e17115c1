import { appendFile, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { readJsonLines, type Line } from "tinker-ts/run-log";

/** Lines that a loop keeps in a file of its own beside the log, so that a run that goes on finds them. */
export class KeptLines {
  /** What was there when the file was opened; a line that a crash cut off is left out. */
  readonly lines: readonly Line[];
  readonly #file: string;
  // A line that was cut off by a crash must not swallow the one behind it.
  #separator: string;

  private constructor(file: string, lines: readonly Line[], separator: string) {
    this.#file = file;
    this.lines = lines;
    this.#separator = separator;
  }

  /** Reads a file; one that is not there has no lines. */
  static async open(file: string): Promise<KeptLines> {
    const { lines } = await readJsonLines(file);
    const isThere = await stat(file).catch(() => undefined);
    return new KeptLines(file, lines, isThere ? "\n" : "");
  }

  /** Adds lines; they are in the file when this resolves. */
  async append(...lines: readonly object[]): Promise<void> {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const separator = this.#separator;
    this.#separator = "";
    await mkdir(path.dirname(this.#file), { recursive: true });
    await appendFile(this.#file, separator + text);
  }
}
