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

it("has one line of help in the imperative for every command and option", async () => {
  const lines = async (node: CommandNode): Promise<string[]> => {
    if (node.kind === "group") {
      const below = [...node.children.values()].map(lines);
      return [node.summary, ...(await Promise.all(below)).flat()];
    }
    const { options } = (await node.load()).command;
    return [node.summary, ...Object.values(options).map((option) => option.description)];
  };
  const all = [
    ...(await lines(commandTree)).slice(1),
    ...Object.values(globalOptions).map((option) => option.description),
  ];
  const odd =
    /^(How|What|Whether|Gives?|Fine-tuning)\b|^[A-Z][a-z]+(ows|ecks|ists|ints|ives|akes)\b|\.$|\n/;
  expect(all.filter((line) => odd.test(line))).toEqual([]);
});

it("names every option that all commands have", () => {
  const [beginning = ""] = manual.split(/^### /m);
  expect(Object.keys(globalOptions).filter((name) => !beginning.includes(flagOf(name)))).toEqual(
    [],
  );
});
