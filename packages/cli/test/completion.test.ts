import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { runCommand } from "./support/run-command.js";

async function script(shell: string): Promise<string> {
  const { code, out, err } = await runCommand(["completion", shell]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

/** What bash offers for the last word of a command line. */
async function offers(...words: string[]): Promise<string[]> {
  const program = `${await script("bash")}
COMP_WORDS=(${["tinker-ts", ...words].map((word) => `'${word}'`).join(" ")})
COMP_CWORD=${words.length}
_tinker_ts
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync("bash", ["--norc", "-c", program], { encoding: "utf8" });
  return out.split("\n").filter((word) => word !== "");
}

it("bash completes commands", async () => {
  expect(await offers("ch")).toEqual(["chat", "checkpoint"]);
  expect(await offers("checkpoint", "p")).toEqual(["publish", "push-hf"]);
  expect(await offers("completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
});

it("bash completes options of the command, behind other options too", async () => {
  expect(await offers("run", "list", "--l")).toEqual(["--limit"]);
  expect(await offers("--json", "run", "list", "--lim")).toEqual(["--limit"]);
  expect(await offers("checkpoint", "delete", "--run-id", "x", "--b")).toEqual([
    "--before",
    "--base-url",
  ]);
  expect(await offers("--qu")).toEqual(["--quiet"]);
});

it("zsh knows every command and its meaning", async () => {
  const text = await script("zsh");
  expect(text).toMatch(/^#compdef tinker-ts\n/);
  expect(text).toContain("'publish:Lets everybody use a checkpoint'");
  expect(text).toContain("'checkpoint set-ttl') entries=(");
});

it("fish knows every command and its meaning", async () => {
  const text = await script("fish");
  expect(text).toContain(`complete -c tinker-ts -n 'test "$(__tinker_ts_path)" = "run"' -a list`);
  expect(text).toContain("-l max-tokens -d 'Longest continuation in tokens'");
});
