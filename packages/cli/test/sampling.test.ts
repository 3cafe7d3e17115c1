import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadTokenizer, type Tokenizer } from "@tinker-ts/hub";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLimited } from "./support/limited-server.js";
import { baseModel, LiveServer, modelFolder } from "./support/live-server.js";

const template =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

let server: LiveServer;
let tokenizer: Tokenizer;
let checkpoint: string;
let chatFolder: string;

beforeAll(async () => {
  chatFolder = mkdtempSync(path.join(tmpdir(), "tinker-ts-chat-"));
  cpSync(modelFolder, chatFolder, { recursive: true });
  writeFileSync(path.join(chatFolder, "chat_template.jinja"), template);
  server = await LiveServer.start({ chatty: chatFolder, [modelFolder]: modelFolder });
  tokenizer = await loadTokenizer(modelFolder);
  checkpoint = (await (await server.train()).saveWeightsForSampler("final")).path;
});

afterAll(async () => {
  await server.stop();
  rmSync(chatFolder, { recursive: true, force: true });
});

interface SampleJson {
  readonly sequences: { tokens: number[]; logprobs: number[]; stop_reason: string }[];
}

const greedy = ["--temperature", "0", "--max-tokens", "8"];

function sampleJson(...options: string[]): Promise<SampleJson> {
  return server.json<SampleJson>(["sample", ...options, ...greedy]);
}

describe("sample", () => {
  it("prints tokens, logprobs and the stop reason as JSON", async () => {
    expect(await sampleJson("--model", baseModel, "--prompt", "Hello")).toEqual({
      sequences: [
        {
          text: expect.any(String) as string,
          tokens: expect.any(Array) as number[],
          logprobs: expect.any(Array) as number[],
          stop_reason: "length",
        },
      ],
      prompt_logprobs: null,
      topk_prompt_logprobs: null,
      type: "sample",
    });
  });

  it("prints the text of the same tokens, a heading before and a summary after it", async () => {
    const { sequences } = await sampleJson("-m", baseModel, "-p", "Hello");
    const { tokens, logprobs } = sequences[0]!;
    const average = logprobs.reduce((sum, value) => sum + value, 0) / logprobs.length;
    const { out, err } = await server.run(["sample", "-m", baseModel, "-p", "Hello", ...greedy]);
    expect(err).toBe("");
    expect(out).toBe(
      `Sample 1:\n${tokenizer.decode(tokens, { skipSpecialTokens: true })}\n` +
        `stop_reason=length | avg_logprob=${average.toFixed(3)}\n`,
    );
  });

  it("samples from a checkpoint, which is not the base model", async () => {
    const base = await sampleJson("--base-model", baseModel, "--prompt", "Hello");
    const trained = await sampleJson("--model-path", checkpoint, "--prompt", "Hello");
    expect(trained.sequences[0]!.logprobs).not.toEqual(base.sequences[0]!.logprobs);
    expect(await sampleJson("Hello", "--model", checkpoint)).toEqual(trained);
  });

  it("takes several samples, with a seed the same ones again", async () => {
    const order = ["sample", "-m", baseModel, "-p", "x", "-n", "3", "--seed", "5"];
    const once = await server.run([...order, "--max-tokens", "6"]);
    expect(once.out.match(/^Sample \d:$/gm)).toEqual(["Sample 1:", "Sample 2:", "Sample 3:"]);
    expect((await server.run([...order, "--max-tokens", "6"])).out).toBe(once.out);
  });

  it("reads the prompt from a file, from standard input, and as tokens", async () => {
    const wanted = await sampleJson("-m", baseModel, "-p", "Hello");
    const ids = [...tokenizer.encode("Hello")];
    writeFileSync(path.join(server.folder, "prompt.txt"), "Hello");
    writeFileSync(path.join(server.folder, "list.json"), JSON.stringify(ids));
    writeFileSync(path.join(server.folder, "tokens.json"), JSON.stringify({ tokens: ids }));
    for (const file of ["prompt.txt", "list.json", "tokens.json"]) {
      expect(await sampleJson("-m", baseModel, "--prompt-file", file)).toEqual(wanted);
    }
    const piped = ["sample", "-m", baseModel, "--prompt-file", "-", ...greedy];
    expect(await server.json(piped, { input: "Hello" })).toEqual(wanted);
  });

  it("writes to a file", async () => {
    const order = ["sample", "-m", baseModel, "-p", "Hello", "-o", "out.txt", ...greedy];
    expect(await server.run(order)).toEqual({ code: 0, out: "", err: "Wrote out.txt\n" });
    expect(readFileSync(path.join(server.folder, "out.txt"), "utf8")).toMatch(
      /^Sample 1:\n[^]*avg_logprob=-?\d+\.\d{3}\n$/,
    );
  });

  it("puts the prompt into the chat template on request", async () => {
    const prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    const wanted = await sampleJson("-m", "chatty", "--prompt", prompt);
    const { sequences } = await sampleJson("-m", "chatty", "--prompt", "Hello", "--chat");
    expect(sequences[0]!.logprobs[0]).toBe(wanted.sequences[0]!.logprobs[0]);
  });

  it("prints tokens as they arrive", async () => {
    const pieces: string[] = [];
    const order = ["sample", "-m", baseModel, "-p", "Hello", "--temperature=0"];
    const context = { onOut: (text: string) => void pieces.push(text) };
    const { out } = await server.run([...order, "--max-tokens", "64"], context);
    expect(out).toContain("stop_reason=length");
    expect(pieces.length).toBeGreaterThan(32);
  });

  it.each([
    [["--prompt", "x"], "No model is named"],
    [["-m", baseModel], "Pass the text to continue once"],
    [["-m", baseModel, "-p", "x", "--prompt-file", "y"], "Pass the text to continue once"],
    [["-m", baseModel, "-p", "x", "y"], "Pass the text to continue once"],
    [
      ["-m", baseModel, "--prompt-file", "nowhere.txt"],
      "--prompt-file: nowhere.txt cannot be read",
    ],
    [["-m", baseModel, "-p", "x", "--output", "nowhere/x"], "nowhere does not exist"],
    [["-m", "gpt", "-p", "x"], '"gpt" is not served here; models of this server: qwen3, chatty'],
    [["-m", "tinker://nobody/weights/x", "-p", "x"], "nobody"],
    [["-m", baseModel, "-p", "x".repeat(2000)], "512"],
  ])("refuses %j", async (options, message) => {
    const { code, out, err } = await server.run(["sample", ...options]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(message);
  });

  it("works with servers that cannot stream", async () => {
    const plain = await startLimited(server.url, ["/api/v1/stream_sample", "/api/v1/tokenizer"]);
    try {
      const order = ["sample", "-m", modelFolder, "-p", "Hello", ...greedy];
      const { out } = await server.run(order);
      const other = await server.run(order, { env: { TINKER_BASE_URL: plain.url } });
      expect(other).toMatchObject({ code: 0, out });
    } finally {
      await plain.stop();
    }
  });
});

describe("chat", () => {
  const order = (model: string): string[] => ["chat", "--model", model, ...greedy];

  it("answers line by line and keeps the conversation until /reset", async () => {
    const talk = (input: string) => server.run(order("chatty"), { input });
    const { code, out, err } = await talk("Hi\nAgain\n/reset\nHi\n");
    expect(code).toBe(0);
    expect(err).toBe(
      "Talking to chatty. /help lists commands, /exit leaves.\nThis is a new conversation.\n",
    );
    const once = (await talk("Hi\n")).out;
    expect(out.startsWith(once)).toBe(true);
    expect(out.endsWith(once)).toBe(true);
    const again = out.slice(once.length, -once.length);
    expect(again).not.toBe("");
    expect((await talk("Again\n")).out).not.toBe(again);
  });

  it("ends at /exit without reading on", async () => {
    const { code, out } = await server.run(order("chatty"), { input: "\n  \n/exit\nHi\n" });
    expect({ code, out }).toEqual({ code: 0, out: "" });
  });

  it("sends the system message", async () => {
    const plain = await server.run(order("chatty"), { input: "Hi\n" });
    const other = await server.run([...order("chatty"), "--system", "Be brief."], {
      input: "Hi\n",
    });
    expect(other.code).toBe(0);
    expect(other.out).not.toBe(plain.out);
  });

  it("continues the text with a model that has no template, and with a checkpoint", async () => {
    const base = await server.run(order(baseModel), { input: "Hi\n" });
    expect(base.code).toBe(0);
    expect(base.err).toContain("no chat template");
    const trained = await server.run([...order(checkpoint), "--quiet"], { input: "Hi\n" });
    expect(trained).toMatchObject({ code: 0, err: "" });
  });

  it("continues after a failed turn", async () => {
    const input = `${"x".repeat(2000)}\nHi\n`;
    const { code, out, err } = await server.run([...order("chatty"), "--quiet"], { input });
    expect(code).toBe(0);
    expect(err).toMatch(/^Error: .+\n.*512/);
    expect(out).toBe((await server.run(order("chatty"), { input: "Hi\n" })).out);
  });
});
