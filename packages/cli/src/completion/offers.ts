import type { Command } from "../command.js";
import type { CommandNode } from "../command-tree.js";
import { globalOptions } from "../parse/global-options.js";
import {
  flagOf,
  type ArgumentSpec,
  type OptionSpec,
  type OptionSpecs,
  type ValueKind,
} from "../parse/option-spec.js";

/** A word that may come next, and what it means. */
export interface Offer {
  readonly text: string;
  readonly description: string;
}

/** What may come next. */
export interface Offers {
  readonly words: readonly Offer[];
  /** Whether the name of a file may come too. */
  readonly files: boolean;
}

/** Values that only a server knows, for the server that the command line names. */
export type ServerValues = (
  kinds: readonly ValueKind[],
  server: { readonly baseUrl: string | undefined; readonly apiKey: string | undefined },
) => Promise<readonly Offer[]>;

const nothing: Offers = { words: [], files: false };

/** What may stand in the place of the last word of a command line, which may be empty or begun. */
export async function offersFor(
  root: CommandNode,
  line: readonly string[],
  serverValues: ServerValues,
): Promise<Offers> {
  const current = line.at(-1) ?? "";
  const place = await readLine(root, line.slice(0, -1));
  if (!place) return nothing;
  const { prefix, offers } = await offersAt(place, current, serverValues);
  const words = offers.words
    .map(({ text, description }) => ({ text: `${prefix}${text}`, description }))
    .filter(({ text }) => text.startsWith(current));
  return { words, files: offers.files };
}

/** Where a command line has come to. */
interface Place {
  readonly node: CommandNode;
  readonly command: Command | undefined;
  readonly options: OptionSpecs;
  readonly given: ReadonlyMap<string, string | undefined>;
  /** The option that needs the next word as its value. */
  readonly pending: string | undefined;
  readonly argumentCount: number;
  /** Behind `--`, where nothing is an option. */
  readonly isPlain: boolean;
}

/** Reads as much as there is; undefined where a word is no command. */
async function readLine(root: CommandNode, words: readonly string[]): Promise<Place | undefined> {
  let node = root;
  let command: Command | undefined;
  let options: OptionSpecs = globalOptions;
  let pending: string | undefined;
  let argumentCount = 0;
  let isPlain = false;
  const given = new Map<string, string | undefined>();
  for (const word of words) {
    if (pending !== undefined) {
      given.set(pending, word);
      pending = undefined;
    } else if (!isPlain && word === "--") {
      isPlain = true;
    } else if (!isPlain && word.startsWith("-")) {
      const [flag = "", ...value] = word.split("=");
      const name = findOption(options, flag);
      if (name === undefined) continue;
      given.set(name, value.length > 0 ? value.join("=") : undefined);
      if (value.length === 0 && options[name]!.type !== "flag") pending = name;
    } else if (node.kind === "group") {
      const child = node.children.get(word);
      if (!child) return undefined;
      node = child;
      if (node.kind === "command") {
        ({ command } = await node.load());
        options = { ...globalOptions, ...command.options };
      }
    } else {
      argumentCount++;
    }
  }
  return { node, command, options, given, pending, argumentCount, isPlain };
}

async function offersAt(
  place: Place,
  current: string,
  serverValues: ServerValues,
): Promise<{ readonly prefix: string; readonly offers: Offers }> {
  const { node, command, options, given, pending, argumentCount, isPlain } = place;
  const server = { baseUrl: given.get("baseUrl"), apiKey: given.get("apiKey") };
  const valuesOf = (spec: OptionSpec | ArgumentSpec): Promise<Offers> =>
    valueOffers(spec, (kinds) => serverValues(kinds, server));
  if (pending !== undefined) return { prefix: "", offers: await valuesOf(options[pending]!) };
  const [, flag] = isPlain ? [] : (/^(--[^=]+)=/.exec(current) ?? []);
  if (flag !== undefined) {
    const name = findOption(options, flag);
    return { prefix: `${flag}=`, offers: name ? await valuesOf(options[name]!) : nothing };
  }
  const flags = { words: flagOffers(options, given), files: false };
  if (!isPlain && current.startsWith("-")) return { prefix: "", offers: flags };
  if (node.kind === "group") {
    const words = [...node.children].map(([text, { summary }]) => ({ text, description: summary }));
    return { prefix: "", offers: { words, files: false } };
  }
  const specs = Object.values(command?.arguments ?? {});
  const last = specs.at(-1);
  const spec = specs[argumentCount] ?? (last?.multiple ? last : undefined);
  return { prefix: "", offers: spec ? await valuesOf(spec) : isPlain ? nothing : flags };
}

async function valueOffers(
  spec: OptionSpec | ArgumentSpec,
  ask: (kinds: readonly ValueKind[]) => Promise<readonly Offer[]>,
): Promise<Offers> {
  const { choices, description } = spec;
  if (choices) return { words: choices.map((text) => ({ text, description })), files: false };
  const isText = !("type" in spec) || spec.type === "string";
  const kinds = spec.values ?? (isText ? ["files" as const] : []);
  const fromServer = kinds.filter((kind) => kind !== "files");
  return {
    words: fromServer.length > 0 ? await ask(fromServer) : [],
    files: kinds.includes("files"),
  };
}

/** Options that were not given yet, or may be given again. */
function flagOffers(options: OptionSpecs, given: ReadonlyMap<string, unknown>): Offer[] {
  return Object.entries(options)
    .filter(([name, { multiple }]) => multiple || !given.has(name))
    .map(([name, { description }]) => ({ text: flagOf(name), description }));
}

function findOption(options: OptionSpecs, flag: string): string | undefined {
  return Object.keys(options).find(
    (name) => flag === flagOf(name) || flag === `-${options[name]!.short}`,
  );
}
