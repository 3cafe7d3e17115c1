import type { CommandNode } from "../command-tree.js";
import { closest } from "../parse/closest.js";
import { globalOptions } from "../parse/global-options.js";
import { flagOf } from "../parse/option-spec.js";
import { UsageError } from "../errors/usage-error.js";

/** The command that a command line means. */
export interface FoundCommand {
  readonly words: readonly string[];
  readonly node: CommandNode;
  /** Everything but the words: global options before them and all that follows. */
  readonly rest: readonly string[];
}

const valueOptions = new Set(
  Object.entries(globalOptions).flatMap(([name, spec]) =>
    spec.type === "flag" ? [] : [flagOf(name), ...("short" in spec ? [`-${spec.short}`] : [])],
  ),
);

/** Follows the words of a command line down the tree; global options may stand between them. */
export function findCommand(args: readonly string[], root: CommandNode): FoundCommand {
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
  return new UsageError(`No such command '${word}'.${near ? ` Did you mean ${near}?` : ""}`, words);
}
