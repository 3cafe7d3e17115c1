import { request as httpRequest } from "node:http";
import fc from "fast-check";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { joined, OpenAiServer, question, type Loose } from "../support/openai-server.js";
import { ScriptedEngine } from "../support/scripted-engine.js";

let real: OpenAiServer;
let scripted: OpenAiServer;
const engine = new ScriptedEngine();

beforeAll(async () => {
  [real, scripted] = await Promise.all([
    OpenAiServer.open(),
    OpenAiServer.open({ engine, limits: { streamPingMs: 20 } }),
  ]);
});
afterEach(() => {
  engine.gates.openAll();
  engine.failsAfter = Infinity;
});
afterAll(() => Promise.all([real.close(), scripted.close()]));

/** How many tokens the server has counted. */
async function sampledTokens(): Promise<number> {
  const text = await (await fetch(`${scripted.url}/metrics`)).text();
  return Number(/^tinker_tokens_total\{kind="sample"\} (\d+)$/m.exec(text)?.[1] ?? 0);
}

const tools = [{ type: "function", function: { name: "add", parameters: { type: "object" } } }];

describe("a stream", () => {
  it("begins with a role, ends with a mark, and is neither measured nor compressed", async () => {
    const { response, events, isDone } = await real.stream();
    expect(events[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
    expect(isDone).toBe(true);
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(response.headers.get("content-length")).toBeNull();
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
    expect(new Set(events.map(({ id }) => id)).size).toBe(1);
  });

  it("says what the whole answer says, however it comes", async () => {
    const texts = fc.constantFrom(
      "Hello 😀 world",
      "<think>\na b</think>\n\nc STOP d",
      'ok\n<tool_call>\n{"name": "add", "arguments": {"s": "}</tool_call>"}}\n</tool_call>\n<tool_call>{"name": "add"}</tool_call>',
      "<think>never",
      "<tool_call>broken",
    );
    await fc.assert(
      fc.asyncProperty(
        texts,
        fc.constantFrom([], ["STOP"], ["b"], ["l"]),
        fc.integer({ min: 1, max: 60 }),
        async (text, stop, maxTokens) => {
          const more = { tools, stop, max_tokens: maxTokens };
          engine.says(text);
          const { json } = await scripted.chat(more);
          engine.says(text);
          const { events } = await scripted.stream(more);
          const said = joined(events);
          const { message, finish_reason, stop_reason } = json.choices[0];
          expect({
            content: said.content,
            reasoning: said.reasoning,
            calls: said.calls.map(({ name, arguments: given }) => [name, given]),
            finish_reason: said.finishReason,
            stop_reason: said.stopReason,
          }).toEqual({
            content: message.content ?? "",
            reasoning: message.reasoning_content ?? "",
            calls: (message.tool_calls ?? []).map((call: Loose) => [
              call.function.name,
              call.function.arguments,
            ]),
            finish_reason,
            stop_reason,
          });
        },
      ),
      { numRuns: 60 },
    );
  });

  it("sends the usage once, where it was asked for", async () => {
    const { json } = await real.chat();
    const { events } = await real.stream({ stream_options: { include_usage: true } });
    const withUsage = events.filter(({ usage }) => usage);
    expect(withUsage).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({
      choices: [],
      usage: { ...json.usage, prompt_tokens_details: {} },
    });
    const { events: without } = await real.stream({ stream_options: {} });
    expect(without.some(({ usage }) => usage)).toBe(false);
  });

  it("has options only where there is a stream", async () => {
    const { status, json } = await real.chat({ stream_options: { include_usage: true } });
    expect([status, json.error.param]).toEqual([400, "stream_options"]);
  });

  it("never shows half a character, but at its end", async () => {
    engine.says("😀");
    const { events } = await scripted.stream({ return_token_ids: true });
    const texts = events.map(({ choices }) => choices[0].delta.content).filter(Boolean);
    expect(texts).toEqual(["😀"]);
    const { tokens } = joined(events);
    expect(tokens.length).toBeGreaterThan(2);
    engine.says("a😀");
    const cut = await scripted.stream({ max_tokens: 3 });
    expect(joined(cut.events)).toMatchObject({ content: "a�", finishReason: "length" });
  });

  it("shows no part of a stop text", async () => {
    engine.says("one two three");
    const { events } = await scripted.stream({ stop: "o thr" });
    const shown = events.map(({ choices }) => choices[0].delta.content ?? "").join("|");
    expect(shown.replaceAll("|", "")).toBe("one tw");
  });

  it("keeps several answers apart", async () => {
    engine.says("first", "second");
    const { events } = await scripted.stream({ n: 2 });
    for (const [index, content] of ["first", "second"].entries()) {
      const own = events.filter(({ choices }) => choices[0]?.index === index);
      expect(own.filter(({ choices }) => choices[0].delta.role)).toHaveLength(1);
      expect(own.filter(({ choices }) => choices[0].finish_reason !== null)).toHaveLength(1);
      expect(joined(events, index)).toMatchObject({ content, finishReason: "stop" });
    }
  });

  it("sends every token once", async () => {
    const more = { logprobs: true, top_logprobs: 2, return_token_ids: true, stop: ["you"] };
    const { json } = await real.chat(more);
    const { events } = await real.stream(more);
    const { tokens, logprobs } = joined(events);
    expect(tokens).toEqual(json.choices[0].token_ids);
    expect(logprobs).toEqual(json.choices[0].logprobs.content);
    const prompts = events.filter((event) => event.prompt_token_ids);
    expect(prompts.map((event) => event.prompt_token_ids)).toEqual([json.prompt_token_ids]);
  });

  it("stops the engine when the client hangs up, and counts what was sampled", async () => {
    engine.says("word ".repeat(300));
    const before = await sampledTokens();
    const { told } = engine;
    const { completions } = scripted.client().chat;
    const stream = completions.stream({ ...question, max_tokens: 1000, stream: true } as never);
    const failed = stream.done().catch((error: unknown) => error);
    await new Promise((resolve) => {
      stream.once("content", resolve);
    });
    await engine.gates.close("token");
    const request = engine.requests.at(-1)!;
    const aborted = new Promise((resolve) => {
      request.signal!.addEventListener("abort", resolve, { once: true });
    });
    stream.abort();
    await aborted;
    expect(await failed).toBeInstanceOf(OpenAI.APIUserAbortError);
    await expect.poll(sampledTokens).toBe(before + engine.told - told);
    const whole = new AbortController();
    engine.says("one two three");
    void engine.gates.close("token");
    const asked = engine.requests.length;
    const given = scripted
      .fetch("/v1/chat/completions", question, {
        signal: whole.signal,
        headers: { "content-type": "application/json" },
      })
      .catch((error: unknown) => error);
    await expect.poll(() => engine.requests.length).toBe(asked + 1);
    whole.abort();
    await given;
    await expect.poll(() => engine.requests.at(-1)!.signal!.aborted).toBe(true);
    expect(scripted.logLines.filter((line) => /error/i.test(line))).toEqual([]);
    // The place is free again.
    engine.gates.openAll();
    engine.says("ok");
    expect((await scripted.chat()).status).toBe(200);
  });

  it("sends a failure on the way as an event", async () => {
    engine.says("one two three four five");
    engine.failsAfter = engine.told + 2;
    const stream = await scripted
      .client()
      .chat.completions.create({ ...question, stream: true } as never);
    const read = async (): Promise<void> => {
      for await (const _ of stream as unknown as AsyncIterable<unknown>) continue;
    };
    await expect(read()).rejects.toThrow(/something went wrong/);
    engine.failsAfter = engine.told + 2;
    engine.says("one two three four five");
    const { events, isDone } = await scripted.stream();
    expect(events.at(-1)).toMatchObject({ error: { type: "server_error", code: "internal" } });
    expect(isDone).toBe(true);
  });

  it("answers a failure before the first token as an ordinary error", async () => {
    engine.failsAfter = 0;
    engine.says("x");
    const broken = await scripted.fetch("/v1/chat/completions", { ...question, stream: true });
    expect(broken.status).toBe(500);
    expect(await broken.json()).toMatchObject({ error: { type: "server_error" } });
    const unknown = await scripted.fetch("/v1/chat/completions", {
      ...question,
      model: "x",
      stream: true,
    });
    expect(unknown.status).toBe(404);
  });

  it("says that it is alive while it waits", async () => {
    engine.says("late");
    const arrived = engine.gates.close("sample");
    const response = scripted.fetch("/v1/chat/completions", { ...question, stream: true });
    await arrived;
    const { body, status } = await response;
    expect(status).toBe(200);
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!/(: ping\n\n){2}/.test(text)) text += (await reader.read()).value;
    engine.gates.open("sample");
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
    expect(text).toContain('"content":"late"');
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  it("does not wait for a reader that does not read, and keeps no more than its answer", async () => {
    const words = "word ".repeat(1500);
    const sampledBefore = await sampledTokens();
    engine.says(words);
    const asked = httpRequest(`${scripted.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    const body = { ...question, stream: true, max_tokens: 3500, logprobs: true, top_logprobs: 20 };
    asked.end(JSON.stringify(body));
    const response = await new Promise<import("node:http").IncomingMessage>((resolve) => {
      asked.once("response", resolve);
    });
    response.pause();
    engine.says("quick");
    const { json } = await scripted.chat();
    expect(json.choices[0].message.content).toBe("quick");
    // The engine has said everything, though megabytes of it are unread.
    await expect.poll(sampledTokens, { timeout: 30_000 }).toBeGreaterThan(sampledBefore + 1500);
    let text = "";
    for await (const part of response.setEncoding("utf8")) text += part;
    expect(text.length).toBeGreaterThan(1.5 * 2 ** 20);
    const events = text
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice(6)));
    expect(joined(events).content).toBe(words);
  }, 60_000);
});
