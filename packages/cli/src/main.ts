import { exitCodes, runCli } from "./run-cli.js";
import { Interrupted } from "./terminal/interrupted.js";
import { processTerminal } from "./terminal/terminal.js";

const graceMs = 1000;

/**
 * Runs the command line of this process.
 *
 * - The first Ctrl-C lets the command tidy up, the second ends it at once; both give 130 (SIGTERM: 143).
 * - A reader that goes away (`| head`) ends the program quietly.
 * - What a command gave up on, such as a program that should print a key, does not keep the process.
 */
export async function main(args: readonly string[] = process.argv.slice(2)): Promise<void> {
  const interrupt = new AbortController();
  const onSignal = (name: "SIGINT" | "SIGTERM"): void => {
    const reason = new Interrupted(name);
    if (interrupt.signal.aborted) process.exit(reason.exitCode);
    interrupt.abort(reason);
  };
  const names = ["SIGINT", "SIGTERM"] as const;
  for (const name of names) process.on(name, onSignal);
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCodes.success);
    throw error;
  });
  try {
    process.exitCode = await runCli(args, processTerminal(), interrupt.signal);
  } finally {
    for (const name of names) process.off(name, onSignal);
    setTimeout(endProcess, graceMs).unref();
  }
}

/** Ends the process once everything is written. */
function endProcess(): void {
  if (process.stdout.writableLength === 0) process.exit();
  else process.stdout.once("drain", () => process.exit());
}
