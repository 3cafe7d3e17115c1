import { tmpdir } from "node:os";
import { Readable } from "node:stream";
import { runCli, type Terminal } from "../../src/index.js";

/** The result of a command line. */
export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The environment of a command line. */
export interface CommandContext {
  /** Standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Makes standard output a screen of this width. */
  readonly columns?: number;
  /** Makes standard error a screen. */
  readonly isScreen?: boolean;
  readonly signal?: AbortSignal;
  /** Called with every piece of standard output. */
  readonly onOut?: (text: string) => void;
}

/** Runs a command line in this process, with a terminal of its own. */
export async function runCommand(
  args: readonly string[],
  context: CommandContext = {},
): Promise<Finished> {
  const { input = "", env = {}, columns, isScreen = false, signal } = context;
  let out = "";
  let err = "";
  const terminal: Terminal = {
    out: (text) => {
      out += text;
      context.onOut?.(text);
    },
    err: (text) => void (err += text),
    input: Readable.from(input === "" ? [] : [input]),
    env: { TINKER_TS_IN_PROCESS: "1", ...env },
    cwd: context.cwd ?? tmpdir(),
    isInteractive: { input: false, out: columns !== undefined, err: isScreen },
    columns,
  };
  const code = await runCli(args, terminal, signal ?? new AbortController().signal);
  return { code, out, err };
}
