import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import type { Finished } from "./run-command.js";

const program = path.resolve(import.meta.dirname, "../../bin/tinker-ts.js");

/** The program in a process of its own. */
export class CliProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly finished: Promise<Finished & { readonly signalName: NodeJS.Signals | null }>;
  out = "";
  err = "";

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = spawn(process.execPath, [program, ...args], {
      env: {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"],
        // What a test starts ends with it.
        TINKER_TS_IN_PROCESS: "1",
        ...env,
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => (this.out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    // A program that ends before it has read everything is no failure of the test.
    child.stdin.on("error", () => {});
    this.finished = once(child, "close").then(([code, signalName]) => ({
      code: (code as number | null) ?? -1,
      signalName: signalName as NodeJS.Signals | null,
      out: this.out,
      err: this.err,
    }));
  }

  /** Writes to standard input and leaves it open. */
  types(text: string): this {
    this.#child.stdin.write(text);
    return this;
  }

  /** Writes to standard input and closes it. */
  ends(text: string): this {
    this.#child.stdin.end(text);
    return this;
  }

  /** Waits until something was written to standard output; fails when the program ends before. */
  async sees(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.out);
      if (found) return found;
      const ended = this.finished.then(({ code, err }) => {
        throw new Error(`the program ended with ${code} before ${String(pattern)}: ${err}`);
      });
      await Promise.race([once(this.#child.stdout, "data"), ended]);
    }
  }

  /** Closes the reading end of standard output, as `head` does. */
  stopsReading(): void {
    this.#child.stdout.destroy();
  }

  kill(signalName: NodeJS.Signals): this {
    this.#child.kill(signalName);
    return this;
  }
}

/** Runs a command line in a process of its own. */
export async function runProcess(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<Finished> {
  return new CliProcess(args, options.env).ends(options.input ?? "").finished;
}
