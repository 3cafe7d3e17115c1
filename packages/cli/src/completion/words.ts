import type { CommandNode } from "../command-tree.js";
import { globalOptions } from "../parse/global-options.js";
import { flagOf, type OptionSpecs } from "../parse/option-spec.js";

/** A word that may come next, and what it means. */
export interface Word {
  readonly text: string;
  readonly description: string;
}

/** What may follow one command or group. */
export interface Place {
  /** The words so far, joined by a space; empty at the beginning. */
  readonly path: string;
  readonly words: readonly Word[];
}

/** What may follow every command and group. */
export function collectWords(root: CommandNode): Promise<Place[]> {
  return collect("", root);
}

async function collect(path: string, node: CommandNode): Promise<Place[]> {
  if (node.kind === "command") {
    const { command } = await node.load();
    const choices = Object.values(command.arguments).flatMap(
      ({ choices: texts = [], description }) => texts.map((text) => ({ text, description })),
    );
    return [{ path, words: [...choices, ...flags({ ...command.options, ...globalOptions })] }];
  }
  const children = [...node.children];
  const commands = children.map(([text, { summary }]) => ({ text, description: summary }));
  const below = await Promise.all(
    children.map(([name, child]) => collect(path === "" ? name : `${path} ${name}`, child)),
  );
  return [{ path, words: [...commands, ...flags(globalOptions)] }, ...below.flat()];
}

function flags(specs: OptionSpecs): Word[] {
  return Object.entries(specs).map(([name, { description }]) => ({
    text: flagOf(name),
    description,
  }));
}
