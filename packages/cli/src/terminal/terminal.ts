import type { Readable } from "node:stream";

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
  const { stdout, stderr, stdin } = process;
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    input: stdin,
    env: process.env,
    cwd: process.cwd(),
    isInteractive: { input: stdin.isTTY, out: stdout.isTTY, err: stderr.isTTY },
    get columns() {
      return stdout.isTTY ? stdout.columns : undefined;
    },
  };
}
