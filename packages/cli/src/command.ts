import type { Output } from "./output/output.js";
import type { GlobalValues } from "./parse/global-options.js";
import type {
  ArgumentSpecs,
  ArgumentValues,
  OptionSpecs,
  OptionValues,
} from "./parse/option-spec.js";
import type { Terminal } from "./terminal/terminal.js";

/** What a command works with. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly output: Output;
  readonly globals: GlobalValues;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** What was given on the command line. */
export interface CommandInput<O extends OptionSpecs, A extends ArgumentSpecs> {
  readonly options: OptionValues<O>;
  readonly arguments: ArgumentValues<A>;
}

/** One command: what it takes and what it does. */
export interface Command<
  O extends OptionSpecs = OptionSpecs,
  A extends ArgumentSpecs = ArgumentSpecs,
> {
  readonly summary: string;
  /** Paragraphs under the summary. */
  readonly details?: readonly string[];
  /** Command lines that work. */
  readonly examples?: readonly string[];
  readonly options: O;
  readonly arguments: A;
  /** Resolves to an exit code other than 0 where one is due. */
  run(context: CommandContext, input: CommandInput<O, A>): Promise<number | void>;
}

/** Lets the types of options and arguments follow from their descriptions. */
export function defineCommand<const O extends OptionSpecs, const A extends ArgumentSpecs>(
  command: Command<O, A>,
): Command {
  return command;
}
