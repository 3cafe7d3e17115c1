import type { Command } from "../command.js";
import type { CommandGroup, CommandNode } from "../command-tree.js";
import { globalOptions } from "../parse/global-options.js";
import {
  flagOf,
  placeholderOf,
  type ArgumentSpecs,
  type OptionSpec,
  type OptionSpecs,
} from "../parse/option-spec.js";

/** The name of the program. */
export const programName = "tinker-ts";

/** The usage line of a command or group. */
export function usageLine(words: readonly string[], node: CommandNode, command?: Command): string {
  const name = [programName, ...words].join(" ");
  if (node.kind === "group") return `Usage: ${name} [OPTIONS] COMMAND [ARGS]...`;
  const args = command ? argumentList(command.arguments) : "";
  return `Usage: ${name} [OPTIONS]${args}`;
}

/** The help of a group of commands; lines are broken where a screen has so many columns. */
export function groupHelp(
  words: readonly string[],
  group: CommandGroup,
  columns = Number.POSITIVE_INFINITY,
): string {
  const commands = [...group.children].map(([name, { summary }]) => [name, summary] as const);
  return [
    usageLine(words, group),
    "",
    ...wrap(group.summary, "  ", columns),
    ...section("Commands", commands, columns),
    ...section("Options", optionRows(globalOptions), columns),
    "",
    `Run '${[programName, ...words].join(" ")} COMMAND --help' for more about a command.`,
    "",
  ].join("\n");
}

/** The help of a command; lines are broken where a screen has so many columns. */
export function commandHelp(
  words: readonly string[],
  node: CommandNode,
  command: Command,
  columns = Number.POSITIVE_INFINITY,
): string {
  const args = Object.entries(command.arguments).map(
    ([name, { description }]) => [placeholderOf(name), description] as const,
  );
  return [
    usageLine(words, node, command),
    "",
    ...wrap(command.summary, "  ", columns),
    ...(command.details ?? []).flatMap((paragraph) => ["", ...wrap(paragraph, "  ", columns)]),
    ...section("Arguments", args, columns),
    ...section("Options", optionRows(command.options), columns),
    ...section("Global options", optionRows(withoutKeys(globalOptions, command.options)), columns),
    ...(command.examples?.length
      ? ["", "Examples:", ...command.examples.map((line) => `  ${programName} ${line}`)]
      : []),
    "",
  ].join("\n");
}

function argumentList(specs: ArgumentSpecs): string {
  return Object.entries(specs)
    .map(([name, { optional, multiple }]) => {
      const text = `${placeholderOf(name)}${multiple ? "..." : ""}`;
      return ` ${optional ? `[${text}]` : text}`;
    })
    .join("");
}

/** Options of a command take the place of global ones of the same name. */
function withoutKeys(specs: OptionSpecs, others: OptionSpecs): OptionSpecs {
  return Object.fromEntries(Object.entries(specs).filter(([name]) => !Object.hasOwn(others, name)));
}

function optionRows(specs: OptionSpecs): (readonly [string, string])[] {
  return Object.entries(specs).map(([name, spec]) => {
    const value = spec.type === "flag" ? "" : ` ${spec.placeholder ?? valueName(spec)}`;
    const short = spec.short === undefined ? "    " : `-${spec.short}, `;
    const notes = [
      spec.multiple ? ["may be repeated"] : [],
      spec.required ? ["required"] : [],
      spec.default === undefined || spec.default === false ? [] : [`default ${spec.default}`],
    ].flat();
    const note = notes.length > 0 ? ` [${notes.join("; ")}]` : "";
    return [`${short}${flagOf(name)}${value}`, `${spec.description}${note}`] as const;
  });
}

function valueName({ type, choices }: OptionSpec): string {
  return choices ? choices.join("|") : type === "string" ? "TEXT" : type.toUpperCase();
}

function section(
  title: string,
  rows: readonly (readonly [string, string])[],
  columns: number,
): string[] {
  if (rows.length === 0) return [];
  const width = Math.min(34, Math.max(...rows.map(([term]) => term.length)));
  const indent = " ".repeat(width + 4);
  return [
    "",
    `${title}:`,
    ...rows.flatMap(([term, text]) => {
      const [first = "", ...others] = wrap(text, indent, columns);
      return term.length > width
        ? [`  ${term}`, first, ...others]
        : [`  ${term.padEnd(width)}  ${first.slice(indent.length)}`, ...others];
    }),
  ];
}

/** Lines of at most so many columns, as far as words allow; examples are left whole, to be copied. */
function wrap(text: string, indent: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent.length + line.length + 1 + word.length > columns) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, indent + line];
}
