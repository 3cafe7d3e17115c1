import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import type { CommandContext } from "../command.js";

/** Reads a line that must not be seen: on a terminal it is not echoed, from a pipe it is the first line. */
export async function askSecret(
  { terminal, signal }: CommandContext,
  prompt: string,
): Promise<string> {
  const isTyped = terminal.isInteractive.input;
  const silent = new Writable({ write: (_part, _encoding, done) => done() });
  const output = isTyped ? { output: silent, terminal: true } : {};
  const lines = createInterface({ input: terminal.input, signal, ...output });
  // Only now does the terminal echo nothing.
  if (isTyped) terminal.err(prompt);
  try {
    return await new Promise<string>((resolve) => {
      lines.once("line", (line) => resolve(line.trim()));
      lines.once("close", () => resolve(""));
    });
  } finally {
    lines.close();
    if (isTyped) terminal.err("\n");
    signal.throwIfAborted();
  }
}
