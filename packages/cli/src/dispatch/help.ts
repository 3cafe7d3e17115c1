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

/** The help of a group of commands. */
export function groupHelp(words: readonly string[], group: CommandGroup): string {
  const commands = [...group.children].map(([name, { summary }]) => [name, summary] as const);
  return [
    usageLine(words, group),
    "",
    `  ${group.summary}`,
    ...section("Commands", commands),
    ...section("Options", optionRows(globalOptions)),
    "",
    `Run '${[programName, ...words].join(" ")} COMMAND --help' for more about a command.`,
    "",
  ].join("\n");
}

/** The help of a command. */
export function commandHelp(words: readonly string[], node: CommandNode, command: Command): string {
  const args = Object.entries(command.arguments).map(
    ([name, { description }]) => [placeholderOf(name), description] as const,
  );
  return [
    usageLine(words, node, command),
    "",
    `  ${command.summary}`,
    ...(command.details ?? []).flatMap((paragraph) => ["", `  ${paragraph}`]),
    ...section("Arguments", args),
    ...section("Options", optionRows(command.options)),
    ...section("Global options", optionRows(withoutKeys(globalOptions, command.options))),
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

function section(title: string, rows: readonly (readonly [string, string])[]): string[] {
  if (rows.length === 0) return [];
  const width = Math.min(34, Math.max(...rows.map(([term]) => term.length)));
  return [
    "",
    `${title}:`,
    ...rows.flatMap(([term, text]) =>
      term.length > width
        ? [`  ${term}`, `  ${" ".repeat(width)}  ${text}`]
        : [`  ${term.padEnd(width)}  ${text}`],
    ),
  ];
}
