import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";
import { Interrupted } from "./interrupted.js";
import type { Terminal } from "./terminal.js";

/** How lines are asked for. */
export interface LineEditorOptions {
  readonly prompt: string;
  /** What the arrow keys bring back, the newest last. */
  readonly history: readonly string[];
  /** Words that the tabulator completes at the beginning of a line. */
  readonly words: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Lines that are edited on a terminal.
 *
 * The terminal stays in raw mode between questions, so Ctrl-C arrives here as a key. Keys that are pressed
 * then are not echoed into what is being printed: the line waits, and shows with the next question.
 */
export class LineEditor {
  /** What Ctrl-C does between questions. @default nothing */
  onInterrupt: (() => void) | undefined;
  readonly #lines: Interface;
  readonly #terminal: Terminal;
  readonly #prompt: string;
  readonly #early: string[] = [];
  #asked: { resolve(line: string | undefined): void; reject(reason: Error): void } | undefined;
  #hasEnded = false;

  constructor(terminal: Terminal, { prompt, history, words, signal }: LineEditorOptions) {
    this.#terminal = terminal;
    this.#prompt = prompt;
    this.#lines = createInterface({
      input: terminal.input,
      output: this.#screen(),
      terminal: true,
      prompt,
      history: history.toReversed(),
      historySize: Math.max(1000, history.length),
      removeHistoryDuplicates: true,
      completer: (line: string) => [words.filter((word) => word.startsWith(line)), line],
      signal,
    });
    this.#lines.on("line", (line) => this.#take(line));
    this.#lines.on("close", () => this.#end());
    this.#lines.on("SIGINT", () => this.#interrupt());
  }

  /** The next line; undefined at the end of the input. Ctrl-C rejects with `Interrupted`. */
  async ask(): Promise<string | undefined> {
    const early = this.#early.shift();
    if (early !== undefined) {
      this.#terminal.err(`${this.#prompt}${early}\n`);
      return early;
    }
    if (this.#hasEnded) return undefined;
    return new Promise((resolve, reject) => {
      this.#asked = { resolve, reject };
      this.#lines.prompt(true);
    });
  }

  /** Gives the terminal back. */
  close(): void {
    this.#lines.close();
  }

  #take(line: string): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked) asked.resolve(line);
    else this.#early.push(line);
  }

  #end(): void {
    this.#hasEnded = true;
    if (!this.#asked) return;
    this.#terminal.err("\n");
    this.#asked.resolve(undefined);
    this.#asked = undefined;
  }

  #interrupt(): void {
    const asked = this.#asked;
    if (!asked) {
      this.onInterrupt?.();
      return;
    }
    this.#asked = undefined;
    this.#terminal.err("\n");
    asked.reject(new Interrupted("SIGINT"));
  }

  /** Where the editor draws: nowhere between questions. */
  #screen(): Writable {
    const terminal = this.#terminal;
    const screen = new Writable({
      decodeStrings: false,
      write: (text: string | Uint8Array, _encoding, done) => {
        if (this.#asked) terminal.err(String(text));
        done();
      },
    });
    // The editor breaks long lines by it.
    return Object.defineProperty(screen, "columns", { get: () => terminal.columns });
  }
}
