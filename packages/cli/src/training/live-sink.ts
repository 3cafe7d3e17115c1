import type { RunSink } from "tinker-ts/run-log";
import type { CommandContext } from "../command.js";

type ConsoleSink = typeof import("tinker-ts/run-log").consoleSink;

/** A sink that shows a run on standard error; none with --quiet or JSON. */
export function liveSink(
  { output, terminal }: CommandContext,
  consoleSink: ConsoleSink,
  totalSteps: number | undefined,
  keys?: readonly (string | RegExp)[],
): readonly RunSink[] {
  if (!output.isLoud) return [];
  const stream = {
    write: (text: string) => terminal.err(text),
    isTTY: terminal.isInteractive.err,
    columns: terminal.columns,
  };
  return [consoleSink({ stream, totalSteps, keys })];
}
