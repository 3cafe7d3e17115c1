import { createInterface } from "node:readline";
import { CliError } from "../errors/cli-error.js";
import type { Terminal } from "./terminal.js";

/** Asks a question that is answered with yes or no; everything but yes is no. */
export async function confirm(
  question: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  terminal.err(`${question} [y/N]: `);
  const lines = createInterface({ input: terminal.input, signal });
  const answer = await new Promise<string | undefined>((resolve) => {
    lines.once("line", resolve);
    lines.once("close", () => resolve(undefined));
  });
  lines.close();
  signal.throwIfAborted();
  if (answer === undefined) {
    terminal.err("\n");
    throw new CliError("Aborted: nobody answered.", "Pass --yes to go on without a question.");
  }
  return /^y(es)?$/i.test(answer.trim());
}
