import { ServiceClient } from "tinker-ts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createLocalHandler } from "../../src/index.js";
import { OpenAiServer, question, type Loose } from "../support/openai-server.js";
import { ScriptedEngine } from "../support/scripted-engine.js";

let real: OpenAiServer;
let scripted: OpenAiServer;
const engine = new ScriptedEngine();
beforeAll(async () => {
  [real, scripted] = await Promise.all([
    OpenAiServer.open(),
    OpenAiServer.open({
      engine,
      limits: { maxBodyBytes: 50_000, maxStreams: 4, maxWaitingStreams: 4 },
      corsOrigins: ["https://page.example"],
    }),
  ]);
});
afterEach(() => engine.gates.openAll());
afterAll(() => Promise.all([real.close(), scripted.close()]));

describe("tokens for training", () => {
  it("give the log-probabilities that they came with", async () => {
    const { json } = await real.chat({
      temperature: 1,
      seed: 5,
      logprobs: true,
      return_token_ids: true,
    });
    const [{ token_ids: tokens, logprobs }] = json.choices;
    const service = new ServiceClient({
      baseUrl: real.url,
      apiKey: "tml-any-key",
      telemetry: false,
    });
    try {
      const sampling = await service.createSamplingClient({ baseModel: "m" });
      const computed = await sampling.computeLogprobs([...json.prompt_token_ids, ...tokens]);
      const own = computed.slice(json.prompt_token_ids.length);
      for (const [index, entry] of logprobs.content.entries()) {
        expect(Math.abs(entry.logprob - own[index]!)).toBeLessThan(1e-4);
      }
    } finally {
      await service.close();
    }
  });
});

describe("what is nested", () => {
  it("is followed as far as calls can be, and refused beyond", async () => {
    const nested = (levels: number) => ({
      method: "POST",
      body: `{"model":"m","temperature":${"[".repeat(levels)}${"]".repeat(levels)},"messages":[]}`,
      headers: { "content-type": "application/json" },
    });
    const fetched = async (levels: number) =>
      (await fetch(`${real.url}/v1/chat/completions`, nested(levels))).status;
    expect([await fetched(990), await fetched(20_000)]).toEqual([400, 413]);
  });
});

describe("lists of tokens", () => {
  it("are bounded, and so are the tokens in them", async () => {
    const { status, json } = await real.chat({
      stop_token_ids: Array.from({ length: 4097 }, () => 1),
    });
    expect([status, json.error.message]).toEqual([
      400,
      "stop_token_ids: has more than 4096 tokens",
    ]);
    // Cut to 32 bits it would be token 5.
    const wide = await real.post("/v1/completions", { model: "m", prompt: [1, 2 ** 32 + 5] });
    expect([wide.status, wide.json.error.param]).toEqual([400, "prompt[1]"]);
    const ask = async (length: number) => {
      const prompt = Array.from({ length }, () => 1);
      const answer = await real.post("/v1/completions", { model: "m", prompt });
      return [answer.status, answer.json.error.message];
    };
    const long = expect.stringContaining("the prompt has 300002 tokens");
    expect(await ask(300_002)).toEqual([400, long]);
    expect(await ask(900_000)).toEqual([413, expect.stringContaining("is too large")]);
  });
});

describe("long texts", () => {
  const text = "The cat sat on the mat. <|im_end|> ".repeat(180);

  it("become the tokens that short ones do", async () => {
    const body = { model: "m", max_tokens: 1, return_token_ids: true };
    const { json } = await scripted.post("/v1/completions", {
      ...body,
      prompt: [text, [1, 2], "The cat"],
    });
    expect(json.choices.map((choice: Loose) => choice.prompt_token_ids)).toEqual([
      [...scripted.tokenizer.encode(text)],
      [1, 2],
      [...scripted.tokenizer.encode("The cat")],
    ]);
    const messages = [{ role: "user", content: text }];
    const template = await scripted.tokenizer.chatTemplate();
    const rendered = template.render(messages, { addGenerationPrompt: true });
    const chat = await scripted.chat({ messages, return_token_ids: true, max_tokens: 1 });
    expect(chat.json.prompt_token_ids).toEqual([...rendered.encode()]);
  });

  it("that a template cannot write are the caller's mistake", async () => {
    const failing = await OpenAiServer.open({
      engine: new ScriptedEngine(),
      template: "{{ raise_exception('no ' + messages[0]['role']) }}",
    });
    try {
      for (const content of ["short", text]) {
        const { status, json } = await failing.chat({ messages: [{ role: "user", content }] });
        expect(status).toBe(400);
        expect(json.error).toMatchObject({ param: "messages" });
        expect(json.error.message).toContain("no user");
      }
    } finally {
      await failing.close();
    }
  });
});

describe("limits", () => {
  it("refuses bodies that are too large or no JSON, in its own form", async () => {
    const cases: [string, RequestInit, number, string | null][] = [
      [JSON.stringify({ ...question, user: "x".repeat(60_000) }), {}, 413, "request_too_large"],
      ["{", {}, 400, "error"],
      ["[]", {}, 400, "error"],
      ["{}", { headers: { "content-type": "text/plain" } }, 415, "unsupported_media_type"],
    ];
    for (const [body, init, status] of cases) {
      const response = await scripted.fetch("/v1/chat/completions", body, init);
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({
        error: { message: expect.any(String), type: "invalid_request_error", param: null },
      });
    }
  });

  it("refuses JSON that unfolds to too much, before it is unfolded", async () => {
    const messages = `[${"{},".repeat(100_000)}{}]`;
    const body = `{"model":"m","messages":${messages}}`;
    const response = await real.fetch("/v1/chat/completions", body);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining("is too large") },
    });
  });

  it("counts what waits as its owner's, and lets it go with the answer", async () => {
    const own = new ScriptedEngine();
    const limits = { maxBodyBytes: 10_000, maxDecompressedBytes: 10_000, maxBodiesBytes: 40_000 };
    const server = await OpenAiServer.open({ engine: own, limits: { ...limits, maxStreams: 1 } });
    try {
      own.says("ok");
      const arrived = own.gates.close("sample");
      const large = { ...question, user: "x".repeat(8000) };
      const ask = (stream: boolean) => server.fetch("/v1/chat/completions", { ...large, stream });
      const waiting = [ask(true)];
      await arrived;
      waiting.push(ask(false));
      await expect.poll(async () => (await ask(false)).status).toBe(429);
      const small = await server.fetch("/v1/models/x", "");
      expect(small.status).toBe(404);
      own.gates.openAll();
      for (const answer of waiting) expect((await answer).status).toBe(200);
      await Promise.all(waiting.map(async (answer) => (await answer).text()));
      expect((await ask(false)).status).toBe(200);
    } finally {
      await server.close();
    }
  });

  it("lets requests wait, refuses when too many do, and clients try again", async () => {
    engine.says("ok");
    const arrived = engine.gates.close("sample");
    const client = scripted.client({ maxRetries: 3 });
    const ask = () => client.chat.completions.create(question as never);
    // Two run, two wait: an owner may take half of the places, and half of those to wait.
    const first = [ask(), ask(), ask(), ask()];
    await arrived;
    await expect
      .poll(async () => (await scripted.fetch("/v1/chat/completions", question)).status)
      .toBe(429);
    const refused = await scripted.fetch("/v1/chat/completions", question);
    expect(refused.headers.get("retry-after-ms")).toBe("1000");
    expect(await refused.json()).toMatchObject({
      error: { type: "rate_limit_error", code: "rate_limit_exceeded" },
    });
    const retried = ask();
    engine.gates.openAll();
    await Promise.all([...first, retried]);
  });

  it("answers pages of allowed origins only", async () => {
    const headers = {
      origin: "https://page.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,x-stainless-os",
    };
    const target = `${scripted.url}/v1/chat/completions`;
    const preflight = await fetch(target, { method: "OPTIONS", headers });
    expect(preflight.headers.get("access-control-allow-origin")).toBe("https://page.example");
    expect(preflight.headers.get("access-control-allow-headers")).toContain("x-stainless-os");
    const foreign = await scripted.fetch("/v1/chat/completions", question, {
      headers: { "content-type": "application/json", origin: "https://evil.example" },
    });
    expect(foreign.status).toBe(403);
    expect(await foreign.json()).toMatchObject({ error: { type: "permission_error" } });
  });

  it("ends what runs when the server closes, and takes nothing more", async () => {
    const own = new ScriptedEngine();
    const closing = await OpenAiServer.open({ engine: own, limits: { shutdownGraceMs: 50 } });
    own.says("one two three four five");
    const begun = closing.fetch("/v1/chat/completions", { ...question, stream: true });
    const response = await begun.then(async (answer) => {
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      return { reader, first: (await reader.read()).value };
    });
    void own.gates.close("token");
    const closed = closing.app.close();
    const late = await closing.app.handle(
      new Request("http://localhost/v1/chat/completions", { method: "POST" }),
    );
    expect(late.status).toBe(503);
    expect(await late.json()).toMatchObject({
      error: { type: "server_error", code: "unavailable" },
    });
    let text = response.first ?? "";
    for (;;) {
      const part = await response.reader.read();
      if (part.done) break;
      text += part.value;
    }
    expect(text).toMatch(/"error":\{|"finish_reason":"stop"/);
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    await closed;
    await closing.close();
  });

  it("counts requests and tokens, and bills them as sampling", async () => {
    const { json } = await real.chat({ messages: [{ role: "user", content: "Count me" }] });
    const metrics = await (await fetch(`${real.url}/metrics`)).text();
    expect(metrics).toMatch(/tinker_http_requests_total\{[^}]*openai POST \/chat\/completions/);
    expect(metrics).toMatch(/tinker_first_token_seconds_count\{[^}]*chat/);
    expect(metrics).toMatch(/tinker_tokens_total\{kind="sample"\}/);
    const hour = 3_600_000;
    const from = Math.floor(Date.now() / hour) * hour;
    const query = new URLSearchParams({
      starting_on: new Date(from).toISOString(),
      ending_before: new Date(from + hour).toISOString(),
    });
    const usage = await (
      await fetch(`${real.url}/api/v1/billing/usage/events?${query.toString()}`)
    ).json();
    const kinds = JSON.stringify(usage);
    expect(kinds).toContain("sampling_sample");
    expect(json.usage.completion_tokens).toBeGreaterThan(0);
  });
});

describe("without a port", () => {
  it("answers clients that are given its fetch", async () => {
    const handler = await createLocalHandler({
      dataDir: `${real.folder}/local`,
      models: { m: `${real.folder}/model` },
      logLevel: "silent",
    });
    try {
      const client = real.client({
        baseURL: "http://local.invalid/v1",
        fetch: (url, init) => handler.fetch(new Request(url, init)),
      });
      const answer = await client.chat.completions.create(question as never);
      expect((answer as { choices: unknown[] }).choices).toHaveLength(1);
      const stream = await client.chat.completions.create({ ...question, stream: true } as never);
      let count = 0;
      for await (const _ of stream as unknown as AsyncIterable<unknown>) count += 1;
      expect(count).toBeGreaterThan(2);
    } finally {
      await handler.close();
    }
  });
});
