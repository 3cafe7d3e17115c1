import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHolding } from "./support/holding-server.js";
import { LiveServer, modelFolder } from "./support/live-server.js";
import { PtyProcess } from "./support/pty-process.js";

const template =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
const ctrlA = "\u0001";
const ctrlC = "\u0003";
const ctrlD = "\u0004";
const up = "\u001B[A";
const right = "\u001B[C";

let server: LiveServer;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-chat-"));
  cpSync(modelFolder, path.join(folder, "model"), { recursive: true });
  writeFileSync(path.join(folder, "model/chat_template.jinja"), template);
  for (const [name, block] of [
    ["thinker", "<think>\n"],
    ["answerer", "<think>\n\n</think>\n\n"],
  ] as const) {
    cpSync(modelFolder, path.join(folder, name), { recursive: true });
    const own = template.replace("assistant\n{% endif %}", `assistant\n${block}{% endif %}`);
    writeFileSync(path.join(folder, name, "chat_template.jinja"), own);
  }
  server = await LiveServer.start({
    chatty: path.join(folder, "model"),
    thinker: path.join(folder, "thinker"),
    answerer: path.join(folder, "answerer"),
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const order = ["chat", "-m", "chatty", "--temperature", "0", "--max-tokens", "8"];

/** Talks through a pipe. */
const talk = (...lines: string[]) => server.run(order, { input: lines.join("\n") });

/** Talks on a terminal, with a history of this name. */
function open(name: string, url = server.url): PtyProcess {
  const env = { TINKER_BASE_URL: url, TINKER_TS_DATA_DIR: path.join(folder, name) };
  return new PtyProcess(order, { cwd: server.folder, env });
}

describe("commands of a conversation", () => {
  it("/help lists them, and a misspelt one is not sent to the model", async () => {
    const { code, out, err } = await talk("/help", "/rest", "/save");
    expect({ code, out }).toEqual({ code: 0, out: "" });
    for (const word of ["/help", "/system [TEXT]", "/reset", "/save FILE", "/exit", "Ctrl-C"])
      expect(err).toContain(word);
    expect(err).toContain("No such command: /rest. Did you mean /reset?");
    expect(err).toContain("Write /save FILE.jsonl.");
  });

  it("sends a path to the model", async () => {
    const { out, err } = await talk("/etc/hosts");
    expect(out).not.toBe("");
    expect(err).not.toContain("No such command");
  });

  it("/system works like --system, survives /reset, and is removed without a text", async () => {
    const said = async (...lines: string[]): Promise<string> => (await talk(...lines)).out;
    const plain = await said("Hi");
    const option = (await server.run([...order, "--system", "Be brief."], { input: "Hi\n" })).out;
    expect(option).not.toBe(plain);
    expect(await said("/system Be brief.", "Hi")).toBe(option);
    expect(await said("/system Be brief.", "/reset", "Hi")).toBe(option);
    expect(await said("/system Be brief.", "/system", "Hi")).toBe(plain);
  });

  it("/save adds conversations to a file that train sft reads", async () => {
    const file = path.join(server.folder, "talks.jsonl");
    const first = await talk("/save talks.jsonl", "Hi", "/save talks.jsonl");
    expect(first.err).toContain("/save: the conversation is empty.");
    expect(first.err).toContain(`Saved to ${file}`);
    writeFileSync(file, readFileSync(file, "utf8").trimEnd());
    await talk("/system Be brief.", "Hi", "Again", "/save talks.jsonl");
    const rows = readFileSync(file, "utf8").trimEnd().split("\n");
    const roles = rows.map((row) =>
      (JSON.parse(row) as { messages: { role: string }[] }).messages.map(({ role }) => role),
    );
    const turn = ["user", "assistant"];
    expect(roles).toEqual([turn, ["system", ...turn, ...turn]]);
    const answer = (JSON.parse(rows[0]!) as { messages: { content: string }[] }).messages[1]!;
    expect(`${answer.content}\n`).toBe(first.out);
    const train = ["train", "sft", "talks.jsonl", "--model", "chatty", "--lr", "1e-4", "--dry-run"];
    expect(await server.json(train)).toMatchObject({ rows: 2 });
  });

  it("reports why a conversation cannot be saved, and continues", async () => {
    const { code, out, err } = await talk("Hi", "/save nowhere/talks.jsonl", "/reset", "Hi");
    expect(code).toBe(0);
    expect(err).toMatch(/^Error: .*nowhere/m);
    expect(out).toBe((await talk("Hi")).out.repeat(2));
  });
});

describe("a model that may think", () => {
  const say = (model: string) =>
    server.run(["chat", "-m", model, "--temperature", "0", "--max-tokens", "8"], { input: "Hi\n" });

  it("is announced with its mode", async () => {
    expect((await say("thinker")).err).toContain("thinker, which thinks before it answers.");
    expect((await say("answerer")).err).toContain("answerer, which answers without thinking.");
    expect((await say("chatty")).err).toContain("Talking to chatty. ");
  });

  it("is reported without an answer when it thinks until the limit", async () => {
    expect((await say("thinker")).err).toContain(
      "There is no answer: the model thought until --max-tokens 8 ended it.",
    );
    expect((await say("answerer")).err).not.toContain("There is no answer");
  });
});

describe("chat on a terminal", () => {
  it("Ctrl-C stops the answer and frees the server, and ends the program only at the prompt", async () => {
    const holding = await startHolding(server.url);
    try {
      const terminal = open("stopped", holding.url);
      await terminal.sees(/Talking to chatty[^]*> /);
      terminal.types("Hi\r");
      await holding.held;
      terminal.types(ctrlC);
      await terminal.sees(/Stopped\./);
      await holding.left;
      terminal.types("/help\r");
      await terminal.sees(/at the prompt it ends the program[^]*> /);
      terminal.types(ctrlC);
      expect(await terminal.finished).toBe(130);
    } finally {
      await holding.stop();
    }
  });

  it("keeps what is typed during an answer for the next prompt", async () => {
    const holding = await startHolding(server.url);
    try {
      const terminal = open("early", holding.url);
      await terminal.sees(/Talking to chatty[^]*> /);
      terminal.types("Hi\r");
      await holding.held;
      terminal.types(`/system Typed early.\r${ctrlC}`);
      await terminal.sees(/Stopped\.[^]*> [^]*\/system Typed early\.[^]*The system message is set/);
      terminal.types(ctrlD);
      expect(await terminal.finished).toBe(0);
    } finally {
      await holding.stop();
    }
  });

  it("edits lines, completes commands, and keeps the history for the next conversation", async () => {
    const first = open("remembered");
    await first.sees(/Talking to chatty[^]*> /);
    for (const [keys, shown] of [
      ["/ystem Edited.", /Edited\./],
      [ctrlA, /\[14D/],
      [right, /\[1C/],
      ["s", /\/system Edited\./],
    ] as const) {
      await first.types(keys).sees(shown);
    }
    first.types("\r");
    await first.sees(/The system message is set/);
    first.types("/hel\t");
    await first.sees(/is set[^]*\/help/);
    first.types("\r");
    await first.sees(/Leave; so does Ctrl-D/);
    first.types(ctrlD);
    expect(await first.finished).toBe(0);

    const file = path.join(folder, "remembered/chat-history");
    expect(readFileSync(file, "utf8")).toBe("/system Edited.\n/help\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = open("remembered");
    await second.sees(/Talking to chatty[^]*> /);
    await second.types(up).sees(/> \S*\/help/);
    await second.types(up).sees(/> \S*\/system Edited\./);
    second.types("\r");
    await second.sees(/The system message is set/);
    second.types("/exit\r");
    expect(await second.finished).toBe(0);
  });

  it("keeps the newest thousand lines of the history", async () => {
    const first = open("long");
    await first.sees(/Talking to chatty[^]*> /);
    first.types("/exit\r");
    await first.finished;
    const file = path.join(folder, "long/chat-history");
    writeFileSync(file, Array.from({ length: 1500 }, (_, index) => `line ${index}\n`).join(""));
    const second = open("long");
    await second.sees(/Talking to chatty[^]*> /);
    second.types("/exit\r");
    await second.finished;
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    expect(lines.slice(-2)).toEqual(["line 1499", "/exit"]);
    expect(lines).toHaveLength(1001);
  });
});
