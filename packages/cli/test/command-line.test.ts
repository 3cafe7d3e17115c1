import { describe, expect, it } from "vitest";
import type { CommandNode } from "../src/command-tree.js";
import { commandTree } from "../src/commands/tree.js";
import { runCommand } from "./support/run-command.js";

interface Entry {
  readonly name: string;
  readonly words: readonly string[];
  readonly kind: CommandNode["kind"];
}

/** Every command and group. */
function entriesOf(node: CommandNode, words: readonly string[] = []): Entry[] {
  const own = { name: ["tinker-ts", ...words].join(" "), words, kind: node.kind };
  if (node.kind === "command") return [own];
  const below = [...node.children].flatMap(([word, child]) => entriesOf(child, [...words, word]));
  return [own, ...below];
}

const entries = entriesOf(commandTree);
const groups = entries.filter(({ kind }) => kind === "group");
const commands = entries.filter(({ kind }) => kind === "command");

describe("help", () => {
  it.each(entries)("is given on standard output for '$name'", async ({ name, words }) => {
    for (const flag of ["--help", "-h"]) {
      const { code, out, err } = await runCommand([...words, flag]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out.split("\n")[0]).toContain(`Usage: ${name} [OPTIONS]`);
      expect(out).toContain("--base-url URL");
    }
  });

  it.each(commands)("of '$name' describes the command and its options", async ({ words }) => {
    const { out } = await runCommand([...words, "--help"]);
    const [usage, , summary] = out.split("\n");
    expect(summary).toMatch(/^ {2}[A-Z].+[.;]/);
    const args = usage!.split("[OPTIONS]")[1]!.match(/[A-Z_]{2,}/g) ?? [];
    for (const name of args) expect(out).toMatch(new RegExp(`^  ${name} `, "m"));
  });

  it.each(entries)("of '$name' fits a screen of 80 columns, examples aside", async ({ words }) => {
    const { out } = await runCommand([...words, "--help"], { columns: 80 });
    const [text = ""] = out.split("\nExamples:\n");
    const [usage, ...lines] = text.split("\n");
    expect(usage).toContain("Usage:");
    // A name that is longer than its column stands on a line of its own.
    const long = lines.filter((line) => line.length > 80 && !/^ +-[^ ]* ?-/.test(line));
    expect(long).toEqual([]);
    const wide = await runCommand([...words, "--help"]);
    expect(out.split(/\s+/)).toEqual(wide.out.split(/\s+/));
  });

  it("does not depend on the rest of the line", async () => {
    const { code, out } = await runCommand(["checkpoint", "info", "--nonsense", "--help"]);
    expect(code).toBe(0);
    expect(out).toContain("Usage: tinker-ts checkpoint info");
  });

  it.each(groups)(
    "goes to standard error with exit code 2 without a command: '$name'",
    async ({ words }) => {
      const { code, out, err } = await runCommand(words);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain("COMMAND [ARGS]...");
    },
  );

  it("lists an option once if a command has its own of that name", async () => {
    const { out } = await runCommand(["serve", "--help"]);
    expect(out.match(/--api-key KEY/g)).toHaveLength(1);
  });
});

describe("usage errors end with 2, name the wrong word, and do nothing", () => {
  it.each([
    [["frobnicate"], "No such command 'frobnicate'. Commands: "],
    [["modles"], "No such command 'modles'. Did you mean models?"],
    [["run", "lst"], "No such command 'lst'. Did you mean list?"],
    [["trian", "sft"], "No such command 'trian'. Did you mean train?"],
    [["chat", "--modle", "x"], "No such option: --modle. Did you mean --model?"],
    [["run", "list", "--limt", "3"], "No such option: --limt. Did you mean --limit?"],
    [
      ["checkpoint", "merge", "x", "-o", "y", "--base", "z"],
      "No such option: --base. Did you mean --base-url or --base-model?",
    ],
    [["eval", "x.jsonl", "--out", "y"], "No such option: --out. Did you mean --output?"],
    [["models", "--zzz"], "No such option: --zzz. Options: "],
    [["run", "list", "--limit", "many"], "'--limit': 'many' is not an integer."],
    [["run", "list", "--limit", "1.5"], "'--limit': '1.5' is not an integer."],
    [["run", "list", "--limit", "-1"], "'--limit': -1 must be at least 0."],
    [["run", "list", "--limit"], "Option '--limit' requires a value."],
    [["run", "list", "--limit="], "'--limit': '' is not an integer."],
    [["run", "list", "extra"], "Got unexpected extra argument (extra)"],
    [["run", "info"], "Missing argument 'RUN_ID'."],
    [["models", "--format", "xml"], "'--format': 'xml' is not one of 'table', 'json'."],
    [["-f", "xml", "models"], "'-f': 'xml' is not one of 'table', 'json'."],
    [["models", "--quiet=yes"], "Option '--quiet' does not take a value."],
    [["models", "--base-url", "--json"], "Option '--base-url' requires a value."],
    [["completion", "tcsh"], "'SHELL': 'tcsh' is not one of 'bash', 'zsh', 'fish'."],
    [["completion"], "Missing argument 'SHELL'. Choose from bash, zsh, fish."],
    [["checkpoint", "save", "--model", "m"], "Missing option '--output'."],
    [["serve", "--port", "70000"], "'--port': 70000 must be at least 0 and at most 65535."],
    [["sample", "--top-p", "2"], "'--top-p': 2 must be at least 0 and at most 1."],
    [["--timeout", "0", "models"], "'--timeout': 0 must be at least 1."],
  ])("%j", async (args, message) => {
    const { code, out, err } = await runCommand(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(/^Usage: tinker-ts /);
    expect(err).toMatch(/^Try 'tinker-ts .*--help' for help\.$/m);
    expect(err).toContain(message);
  });
});

describe("global options", () => {
  it.each([
    [["--json", "version"]],
    [["--json", "--version"]],
    [["version", "--json"]],
    [["-f", "json", "version"]],
    [["version", "--format=json"]],
    [["--format", "json", "version"]],
    [["version", "-fjson"]],
    [["--base-url", "http://127.0.0.1:9", "--api-key", "k", "--json", "version"]],
  ])("are accepted before or after the command: %j", async (args) => {
    const { code, out } = await runCommand(args);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string });
  });

  it("are accepted between the words of a command", async () => {
    const { code, err } = await runCommand(["run", "--base-url", "nonsense", "list"]);
    expect(code).toBe(1);
    expect(err).toContain('"nonsense" is not an address');
  });
});

it.each([[["version"]], [["--version"]]])("%j prints name and version", async (args) => {
  const { code, out } = await runCommand(args);
  expect(code).toBe(0);
  expect(out).toMatch(/^tinker-ts \d+\.\d+\.\d+\n$/);
});

describe("without a server", () => {
  it("explains how to start one, and that the embedded engine needs none", async () => {
    const { code, out, err } = await runCommand(["run", "list"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^Error: No server and no API key are set\.$/m);
    for (const way of ["--base-url local:", "tinker-ts serve", "--api-key KEY"]) {
      expect(err).toContain(way);
    }
  });

  it("fails at once if the address has no listener", async () => {
    const { code, err } = await runCommand(["models", "--base-url", "http://127.0.0.1:9"]);
    expect(code).toBe(1);
    expect(err).toMatch(/^Error: Connection failed\nCannot reach http:\/\/127\.0\.0\.1:9: /);
    expect(err).toContain("tinker-ts serve");
  });

  it.each(["nonsense", "ftp://127.0.0.1", "http://", "local"])(
    "refuses %s as an address",
    async (baseUrl) => {
      const { code, err } = await runCommand(["models"], { env: { TINKER_BASE_URL: baseUrl } });
      expect(code).toBe(1);
      expect(err).toContain(`${JSON.stringify(baseUrl)} is not an address.`);
    },
  );

  it("shows the stack of an error only with --debug", async () => {
    const args = ["models", "--base-url", "http://127.0.0.1:9"];
    expect((await runCommand(args)).err).not.toContain("    at ");
    expect((await runCommand([...args, "--debug"])).err).toContain("    at ");
  });
});

it("a command that is interrupted ends with 130 and prints nothing", async () => {
  const args = ["models", "--base-url", "http://127.0.0.1:9"];
  const result = await runCommand(args, { signal: AbortSignal.abort() });
  expect(result).toEqual({ code: 130, out: "", err: "" });
});
