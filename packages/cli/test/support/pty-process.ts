import path from "node:path";
import { spawn, type IPty } from "@lydell/node-pty";

const program = path.resolve(import.meta.dirname, "../../bin/tinker-ts.js");

/** The program, or another one such as a shell, in a real terminal. */
export class PtyProcess {
  readonly #pty: IPty;
  readonly finished: Promise<number>;
  screen = "";
  #waiting: (() => void)[] = [];

  constructor(
    args: readonly string[],
    options: {
      readonly cwd: string;
      readonly env: Readonly<Record<string, string>>;
      readonly command?: string;
    },
  ) {
    const { PATH = "", HOME = "" } = process.env;
    const [file, given] =
      options.command === undefined
        ? [process.execPath, [program, ...args]]
        : [options.command, [...args]];
    this.#pty = spawn(file, given, {
      cols: 100,
      rows: 40,
      name: "xterm-256color",
      cwd: options.cwd,
      env: { PATH, HOME, ...options.env },
    });
    this.#pty.onData((text) => {
      this.screen += text;
      this.#wake();
    });
    this.finished = new Promise((resolve) =>
      this.#pty.onExit(({ exitCode }) => {
        resolve(exitCode);
        this.#wake();
      }),
    );
  }

  /** Presses keys. */
  types(text: string): this {
    this.#pty.write(text);
    return this;
  }

  /** Waits until something is on the screen; fails when the program ends before. */
  async sees(pattern: RegExp): Promise<void> {
    let hasEnded = false;
    void this.finished.then(() => (hasEnded = true));
    while (!pattern.test(this.screen)) {
      if (hasEnded) throw new Error(`the program ended before ${String(pattern)}: ${this.screen}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
