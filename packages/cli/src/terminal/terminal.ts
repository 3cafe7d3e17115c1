import type { Readable } from "node:stream";
import { isatty } from "node:tty";

/** Where a command reads and writes; tests give their own. */
export interface Terminal {
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  readonly input: Readable;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly isInteractive: { readonly input: boolean; readonly out: boolean; readonly err: boolean };
  /** Width of standard output; undefined when it is not a screen. */
  readonly columns: number | undefined;
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    // Opening standard input takes time that most commands need not spend.
    get input() {
      return process.stdin;
    },
    env: process.env,
    cwd: process.cwd(),
    isInteractive: { input: isatty(0), out: isatty(1), err: isatty(2) },
    get columns() {
      return stdout.isTTY ? stdout.columns : undefined;
    },
  };
}
