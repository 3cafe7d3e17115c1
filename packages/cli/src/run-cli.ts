import type { CommandNode } from "./command-tree.js";
import type { Command } from "./command.js";
import { commandTree } from "./commands/tree.js";
import { commandHelp, groupHelp, programName, usageLine } from "./dispatch/help.js";
import { UsageError } from "./errors/usage-error.js";
import { errorText } from "./output/describe-error.js";
import { Output } from "./output/output.js";
import { closest } from "./parse/closest.js";
import { globalOptions, type GlobalValues } from "./parse/global-options.js";
import { flagOf } from "./parse/option-spec.js";
import { parseOptions, type ParsedLine } from "./parse/parse-options.js";
import { Interrupted } from "./terminal/interrupted.js";
import { styleFor } from "./terminal/style.js";
import type { Terminal } from "./terminal/terminal.js";

/** How a command line ended. */
export const exitCodes = { success: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** Runs one command line and returns its exit code; never throws. */
export async function runCli(
  args: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  try {
    return await dispatch(args, terminal, signal);
  } catch (error) {
    if (error instanceof UsageError) return printUsageError(error, terminal);
    const reason: unknown = signal.aborted ? signal.reason : error;
    if (reason instanceof Interrupted) return reason.exitCode;
    if (signal.aborted) return exitCodes.interrupted;
    printFailure(error, terminal, args.includes("--debug"));
    return exitCodes.failure;
  }
}

async function dispatch(
  args: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { words, node, rest } = findCommand(args, commandTree);
  if (node === commandTree && rest.includes("--version")) {
    const others = rest.filter((arg) => arg !== "--version");
    return dispatch(["version", ...others], terminal, signal);
  }
  if (node.kind === "group") {
    const { options } = named(words, () => parseOptions(rest, globalOptions, {}));
    const help = groupHelp(words, node, terminal.columns);
    if (options["help"]) terminal.out(help);
    else terminal.err(help);
    return options["help"] ? exitCodes.success : exitCodes.usage;
  }
  const { command } = await node.load();
  if (asksForHelp(rest)) {
    terminal.out(commandHelp(words, node, command, terminal.columns));
    return exitCodes.success;
  }
  const line = named(words, () =>
    parseOptions(rest, { ...globalOptions, ...command.options }, command.arguments),
  );
  const globals = line.options as GlobalValues;
  const context = { terminal, globals, signal, output: new Output(terminal, globals) };
  const code = await named(words, () => command.run(context, toInput(line)));
  return code ?? exitCodes.success;
}

/** Prints help even when the rest of the line is invalid. */
function asksForHelp(rest: readonly string[]): boolean {
  const end = rest.indexOf("--");
  const options = end === -1 ? rest : rest.slice(0, end);
  return options.includes("--help") || options.includes("-h");
}

function toInput({ options, arguments: values }: ParsedLine): Parameters<Command["run"]>[1] {
  return { options, arguments: values } as Parameters<Command["run"]>[1];
}

/** Adds the command to a usage error. */
function named<T>(words: readonly string[], action: () => T): T {
  const rename = (error: unknown): unknown =>
    error instanceof UsageError && error.words.length === 0
      ? new UsageError(error.message, words)
      : error;
  try {
    const result = action();
    if (result instanceof Promise) {
      return result.catch((error: unknown) => {
        throw rename(error);
      }) as T;
    }
    return result;
  } catch (error) {
    throw rename(error);
  }
}

async function printUsageError(error: UsageError, terminal: Terminal): Promise<number> {
  const { words } = error;
  const { node } = findCommand(words, commandTree);
  const usage = usageLine(words, node, await commandOf(node));
  const help = [programName, ...words, "--help"].join(" ");
  terminal.err(`${usage}\nTry '${help}' for help.\n\nError: ${error.message}\n`);
  return exitCodes.usage;
}

async function commandOf(node: CommandNode): Promise<Command | undefined> {
  return node.kind === "command" ? (await node.load()).command : undefined;
}

function printFailure(error: unknown, terminal: Terminal, debug: boolean): void {
  terminal.err(errorText(error, styleFor(terminal, "err")));
  if (debug && error instanceof Error) terminal.err(`${stackOf(error)}\n`);
}

function stackOf(error: Error): string {
  const own = error.stack ?? error.message;
  return error.cause instanceof Error ? `${own}\nCaused by: ${stackOf(error.cause)}` : own;
}

/** The command of a command line. */
interface FoundCommand {
  readonly words: readonly string[];
  readonly node: CommandNode;
  /** The other arguments: global options before the words, and everything after them. */
  readonly rest: readonly string[];
}

const valueOptions = new Set(
  Object.entries(globalOptions).flatMap(([name, spec]) =>
    spec.type === "flag" ? [] : [flagOf(name), ...("short" in spec ? [`-${spec.short}`] : [])],
  ),
);

/** Finds the command of a command line; global options may precede its words. */
function findCommand(args: readonly string[], root: CommandNode): FoundCommand {
  const words: string[] = [];
  const rest: string[] = [];
  let node = root;
  let index = 0;
  while (node.kind === "group" && index < args.length) {
    const word = args[index++]!;
    if (word.startsWith("-")) {
      rest.push(word);
      if (valueOptions.has(word) && index < args.length) rest.push(args[index++]!);
      continue;
    }
    const child: CommandNode | undefined = node.children.get(word);
    if (!child) throw unknownCommand(word, [...node.children.keys()], words);
    words.push(word);
    node = child;
  }
  return { words, node, rest: [...rest, ...args.slice(index)] };
}

function unknownCommand(
  word: string,
  known: readonly string[],
  words: readonly string[],
): UsageError {
  const near = closest(word, known);
  const hint = near ? `Did you mean ${near}?` : `Commands: ${known.join(", ")}.`;
  return new UsageError(`No such command '${word}'. ${hint}`, words);
}
