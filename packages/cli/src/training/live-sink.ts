import type { RunSink } from "tinker-ts/run-log";
import type { CommandContext } from "../command.js";

type ConsoleSink = typeof import("tinker-ts/run-log").consoleSink;

/** Shows a run while it goes on, on standard error; nothing where nobody wants it. */
export function liveSink(
  { output, terminal }: CommandContext,
  consoleSink: ConsoleSink,
  totalSteps: number | undefined,
): readonly RunSink[] {
  if (!output.isLoud) return [];
  const stream = {
    write: (text: string) => terminal.err(text),
    isTTY: terminal.isInteractive.err,
    columns: terminal.columns,
  };
  return [consoleSink({ stream, totalSteps })];
}
