import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { baseModel, LiveServer } from "./support/live-server.js";
import { PtyProcess } from "./support/pty-process.js";
import { runCommand } from "./support/run-command.js";

const program = path.resolve(import.meta.dirname, "../bin/tinker-ts.js");
const hasShell = (name: string): boolean => spawnSync(name, ["-c", "true"]).status === 0;

let server: LiveServer;
let checkpoint: string;
let runId: string;
let folder: string;
/** The environment of shells: the program on the path, and a server. */
let env: Record<string, string>;

beforeAll(async () => {
  server = await LiveServer.start();
  checkpoint = (await (await server.train()).saveWeightsForSampler("final")).path;
  [, runId = ""] = /^tinker:\/\/([^/]+)/.exec(checkpoint) ?? [];
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-shell-"));
  mkdirSync(path.join(folder, "bin"));
  const file = path.join(folder, "bin/tinker-ts");
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
  chmodSync(file, 0o755);
  env = {
    PATH: `${path.join(folder, "bin")}:${process.env["PATH"]}`,
    HOME: folder,
    ZDOTDIR: folder,
    TINKER_BASE_URL: server.url,
  };
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The completions of the last word; "files" first if file names are allowed. */
async function offers(...words: string[]): Promise<string[]> {
  const { code, out, err } = await server.run(["completion", "bash", "--", ...words]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const [kind, ...lines] = out.trimEnd().split("\n");
  return kind === "files" ? ["files", ...lines] : lines;
}

describe("completions", () => {
  it("include commands, at every level", async () => {
    expect(await offers("ch")).toEqual(["chat", "checkpoint"]);
    expect(await offers("--json", "checkpoint", "p")).toEqual(["publish", "push-hf"]);
    expect(await offers("nonsense", "")).toEqual([]);
  });

  it("include options that were not given, also after other options", async () => {
    expect(await offers("--format", "json", "run", "list", "--l")).toEqual(["--limit"]);
    expect(await offers("checkpoint", "delete", "--run-id", "x", "--r")).toEqual([]);
    expect(await offers("--qu")).toEqual(["--quiet"]);
  });

  it("include the values of an option or an argument", async () => {
    expect(await offers("--format", "")).toEqual(["table", "json"]);
    expect(await offers("run", "list", "-f", "j")).toEqual(["json"]);
    expect(await offers("run", "list", "--format=j")).toEqual(["--format=json"]);
    expect(await offers("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await offers("run", "list", "--limit", "")).toEqual([]);
    expect(await offers("sample", "--prompt-file", "")).toEqual(["files"]);
  });

  it("include models, runs, checkpoints and sessions of the server", async () => {
    expect(await offers("chat", "--model", "q")).toEqual(["files", baseModel]);
    expect(await offers("chat", "-m", "tinker:")).toEqual(["files", checkpoint]);
    expect(await offers("run", "info", "")).toEqual([runId]);
    expect(await offers("checkpoint", "list", "--run-id", "")).toEqual([runId]);
    expect(await offers("checkpoint", "delete", "x", "")).toEqual([checkpoint]);
    expect(await offers("session", "info", "")).toHaveLength(1);
  });

  it("come from the server that the line names", async () => {
    const line = ["completion", "bash", "--", "run", "info", "--base-url", server.url, ""];
    expect((await runCommand(line)).out).toBe(`words\n${runId}\n`);
    expect((await runCommand(["completion", "bash", "--", "run", "info", ""])).out).toBe("words\n");
    const local = ["completion", "bash", "--", "train", "sft", "--base-url=local:", "-m", "t"];
    expect((await runCommand(local)).out).toBe("files\ntinker-ts/sprout\n");
  });
});

describe("a server that cannot be reached", () => {
  let silent: Server;
  beforeAll(async () => {
    silent = createServer((socket) => socket.on("error", () => {}));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => silent.close());

  const silentUrl = (): string => `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  it.each([
    ["no listener", () => ({ TINKER_BASE_URL: "http://127.0.0.1:1" })],
    ["it never answers", () => ({ TINKER_BASE_URL: silentUrl() })],
    ["its address is none", () => ({ TINKER_BASE_URL: "nonsense" })],
    [
      // What waits for its input ends with the process that started it.
      "its key does not come",
      () => ({ TINKER_BASE_URL: silentUrl(), TINKER_CREDENTIAL_CMD: "cat" }),
    ],
  ])("only removes values from completions when %s", (_, settings) => {
    const line = ["completion", "zsh", "--", "run", "info", ""];
    const context = { ...env, ...settings() };
    // The process ends, too: the shell waits for that.
    const { status, stdout, stderr } = spawnSync(path.join(folder, "bin/tinker-ts"), line, {
      env: context,
      encoding: "utf8",
      timeout: 15_000,
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "words\n", stderr: "" });
  });
});

/** Partial lines with their completion. */
const begun = (): [string, string][] => [
  ["checkp", "checkpoint"],
  ["checkpoint info tinker:", `checkpoint info ${checkpoint}`],
  ["run info ", `run info ${runId}`],
  ["run list --form", "run list --format"],
  ["run list --format=js", "run list --format=json"],
  ["eval answ", "eval answers.jsonl"],
];

/** Types lines into a shell with these settings; the shell itself echoes the result. */
async function completes(command: string, args: string[], settings: string): Promise<void> {
  const rc = path.join(folder, command === "zsh" ? ".zshrc" : ".bashrc");
  writeFileSync(rc, `${settings}\nPS1='ready> '\n`);
  writeFileSync(path.join(server.folder, "answers.jsonl"), "");
  const shell = new PtyProcess(args, { command, cwd: server.folder, env });
  await shell.sees(/ready> /);
  for (const [typed, whole] of begun()) {
    shell.types(`tinker-ts ${typed}\t\u0001echo :\r`);
    await shell.sees(/[\r\n]:tinker-ts [^]*ready> /);
    const [, line = ""] = /[\r\n]:tinker-ts ([^\r\n]*)/.exec(shell.screen)!;
    expect(line.trimEnd()).toBe(whole);
    shell.screen = "";
  }
  shell.types("exit\r");
  await shell.finished;
}

it("bash completes words and values", async () => {
  const args = ["--noprofile", "--rcfile", path.join(folder, ".bashrc"), "-i"];
  await completes("bash", args, 'eval "$(tinker-ts completion bash)"');
});

describe.runIf(hasShell("zsh"))("zsh", () => {
  const load = 'eval "$(tinker-ts completion zsh)"';
  const compinit = "autoload -Uz compinit; compinit -u";
  it.each([
    ["after compinit", `${compinit}\n${load}`],
    ["before compinit", `${load}\n${compinit}`],
    ["without compinit", load],
  ])("completes words and values %s", async (_, settings) => {
    await completes("zsh", ["-d", "-i"], settings);
  });
});

it.runIf(hasShell("fish"))("fish completes words and values", async () => {
  const ask = async (line: string): Promise<string[]> => {
    const load = "tinker-ts completion fish | source";
    const args = ["--no-config", "-c", `${load}; complete -C '${line}'`];
    const { stdout } = await promisify(execFile)("fish", args, { env, cwd: server.folder });
    return stdout.trimEnd().split("\n");
  };
  expect(await ask("tinker-ts checkp")).toEqual(["checkpoint\tManage checkpoints"]);
  expect(await ask("tinker-ts run list --lim")).toEqual([expect.stringMatching(/^--limit\t/)]);
  expect(await ask("tinker-ts checkpoint info ")).toEqual([`${checkpoint}\tsampler checkpoint`]);
  expect(await ask("tinker-ts run list --format=j")).toEqual(["--format=json\tOutput format"]);
});
