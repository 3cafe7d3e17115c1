import { parseArgs } from "node:util";
import { closest } from "./closest.js";
import {
  flagOf,
  placeholderOf,
  type ArgumentSpec,
  type ArgumentSpecs,
  type OptionSpec,
  type OptionSpecs,
} from "./option-spec.js";
import { UsageError } from "../errors/usage-error.js";

type Value = string | number | boolean;

/** Options and arguments of a command line with their defaults. */
export interface ParsedLine {
  readonly options: Record<string, Value | readonly Value[] | undefined>;
  readonly arguments: Record<string, string | readonly string[] | undefined>;
}

/** Reads options and arguments; throws a `UsageError` that names the invalid one. */
export function parseOptions(
  args: readonly string[],
  optionSpecs: OptionSpecs,
  argumentSpecs: ArgumentSpecs,
): ParsedLine {
  const byFlag = new Map(
    Object.entries(optionSpecs).map(([name]) => [flagOf(name).slice(2), name]),
  );
  const given = new Map<string, Value[]>();
  const positionals: string[] = [];
  for (const token of tokenize(args, optionSpecs)) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const name = byFlag.get(token.name);
    const spec = name === undefined ? undefined : optionSpecs[name];
    if (name === undefined || !spec) throw unknownOption(token.rawName, [...byFlag.keys()]);
    given.set(name, [...(given.get(name) ?? []), readValue(token.rawName, spec, token)]);
  }
  return {
    options: completeOptions(optionSpecs, given),
    arguments: assignArguments(argumentSpecs, positionals),
  };
}

function tokenize(args: readonly string[], specs: OptionSpecs) {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, { type, short }]) => [
      flagOf(name).slice(2),
      {
        type: type === "flag" ? ("boolean" as const) : ("string" as const),
        ...(short === undefined ? {} : { short }),
      },
    ]),
  );
  return parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens;
}

function readValue(
  rawName: string,
  spec: OptionSpec,
  token: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): Value {
  const { value } = token;
  if (spec.type === "flag") {
    if (value === undefined) return true;
    throw new UsageError(`Option '${rawName}' does not take a value.`);
  }
  const isNumber = spec.type !== "string";
  const looksLikeOption = !token.inlineValue && /^-./.test(value ?? "");
  if (value === undefined || (looksLikeOption && !(isNumber && /^-[\d.]/.test(value)))) {
    const hint = value === undefined ? "" : ` To pass ${value}, write ${rawName}=${value}.`;
    throw new UsageError(`Option '${rawName}' requires a value.${hint}`);
  }
  if (isNumber) return readNumber(rawName, spec, value);
  checkChoice(`'${rawName}'`, spec.choices, value);
  return value;
}

function readNumber(rawName: string, { type, min, max }: OptionSpec, text: string): number {
  const value = Number(text);
  const kind = type === "integer" ? "integer" : "number";
  const isRight = text.trim() !== "" && Number.isFinite(value);
  if (!isRight || (type === "integer" && !Number.isSafeInteger(value))) {
    throw new UsageError(
      `Invalid value for '${rawName}': '${text}' is not ${kind === "integer" ? "an" : "a"} ${kind}.`,
    );
  }
  if ((min !== undefined && value < min) || (max !== undefined && value > max)) {
    const range = [
      min === undefined ? [] : `at least ${min}`,
      max === undefined ? [] : `at most ${max}`,
    ];
    throw new UsageError(
      `Invalid value for '${rawName}': ${text} must be ${range.flat().join(" and ")}.`,
    );
  }
  return value;
}

function checkChoice(what: string, choices: readonly string[] | undefined, value: string): void {
  if (!choices || choices.includes(value)) return;
  const list = choices.map((choice) => `'${choice}'`).join(", ");
  throw new UsageError(`Invalid value for ${what}: '${value}' is not one of ${list}.`);
}

function unknownOption(rawName: string, known: readonly string[]): UsageError {
  const name = rawName.replace(/^-+/, "");
  const near = closest(name, known);
  const longer = known.filter((other) => name.length > 1 && other.startsWith(name));
  const meant = (near === undefined ? longer : [near]).map((other) => `--${other}`);
  const all = known.map((other) => `--${other}`).join(", ");
  const hint = meant.length > 0 ? `Did you mean ${meant.join(" or ")}?` : `Options: ${all}.`;
  return new UsageError(`No such option: ${rawName}. ${hint}`);
}

function completeOptions(specs: OptionSpecs, given: ReadonlyMap<string, Value[]>) {
  const values: ParsedLine["options"] = {};
  for (const [name, spec] of Object.entries(specs)) {
    const found = given.get(name);
    if (spec.required && !found) throw new UsageError(`Missing option '${flagOf(name)}'.`);
    if (spec.multiple) values[name] = found ?? [];
    else values[name] = found?.at(-1) ?? spec.default ?? (spec.type === "flag" ? false : undefined);
  }
  return values;
}

function assignArguments(specs: ArgumentSpecs, positionals: readonly string[]) {
  const values: ParsedLine["arguments"] = {};
  const rest = [...positionals];
  for (const [name, spec] of Object.entries(specs)) {
    const taken = spec.multiple ? rest.splice(0) : rest.splice(0, 1);
    for (const value of taken) checkChoice(`'${placeholderOf(name)}'`, spec.choices, value);
    if (taken.length === 0 && !spec.optional) throw missingArgument(name, spec);
    values[name] = spec.multiple ? taken : taken[0];
  }
  if (rest.length > 0) throw new UsageError(`Got unexpected extra argument (${rest.join(" ")})`);
  return values;
}

function missingArgument(name: string, { choices, multiple }: ArgumentSpec): UsageError {
  const dots = multiple ? "..." : "";
  const hint = choices ? ` Choose from ${choices.join(", ")}.` : "";
  return new UsageError(`Missing argument '${placeholderOf(name)}${dots}'.${hint}`);
}
