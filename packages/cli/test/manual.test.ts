import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { CommandNode } from "../src/command-tree.js";
import { commandTree } from "../src/commands/tree.js";
import { globalOptions } from "../src/parse/global-options.js";
import { flagOf } from "../src/parse/option-spec.js";

const manual = readFileSync(path.resolve(import.meta.dirname, "../../../docs/cli.md"), "utf8");

/** The manual's sections about commands, by their words. */
const sections = new Map(
  manual.split(/^### /m).map((text) => {
    const [heading = "", ...lines] = text.split("\n");
    return [heading, lines.join("\n").split(/^## /m)[0]!];
  }),
);

async function leaves(
  node: CommandNode,
  words: readonly string[] = [],
): Promise<{ words: string; flags: string[] }[]> {
  if (node.kind === "command") {
    const { options } = (await node.load()).command;
    return [{ words: words.join(" "), flags: Object.keys(options).map(flagOf) }];
  }
  const below = [...node.children].map(([word, child]) => leaves(child, [...words, word]));
  return (await Promise.all(below)).flat();
}

it("has a section for every command with all of its options", async () => {
  const missing = (await leaves(commandTree)).flatMap(({ words, flags }) => {
    const section = sections.get(words);
    if (section === undefined) return [words];
    return flags.filter((flag) => !section.includes(flag)).map((flag) => `${words} ${flag}`);
  });
  expect(missing).toEqual([]);
});

it("has no section for a command that does not exist", async () => {
  const known = (await leaves(commandTree)).map(({ words }) => words);
  expect([...sections.keys()].slice(1).filter((words) => !known.includes(words))).toEqual([]);
});

it("has one option name for output files", async () => {
  const flags = (await leaves(commandTree)).flatMap((command) => command.flags);
  expect(new Set(flags.filter((flag) => flag.startsWith("--out")))).toEqual(new Set(["--output"]));
});

it("names every global option", () => {
  const [beginning = ""] = manual.split(/^### /m);
  expect(Object.keys(globalOptions).filter((name) => !beginning.includes(flagOf(name)))).toEqual(
    [],
  );
});
