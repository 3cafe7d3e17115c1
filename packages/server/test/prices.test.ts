import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OpenAiServer, type Loose } from "./support/openai-server.js";
import { ScriptedEngine } from "./support/scripted-engine.js";

/*
 * One owner asks for as much as one request can name; another one asks for little.
 */

const apiKeys = [
  { key: "tml-key-ann", owner: "ann" },
  { key: "tml-key-bob", owner: "bob" },
];
const headersOf = (owner: "ann" | "bob") => ({
  "content-type": "application/json",
  authorization: `Bearer tml-key-${owner}`,
});

let real: OpenAiServer;
let scripted: OpenAiServer;
const engine = new ScriptedEngine();
beforeAll(async () => {
  [real, scripted] = await Promise.all([
    OpenAiServer.open({ apiKeys }),
    OpenAiServer.open({ apiKeys, engine }),
  ]);
});
afterAll(async () => {
  engine.gates.openAll();
  await Promise.all([real.close(), scripted.close()]);
});

async function complete(
  server: OpenAiServer,
  owner: "ann" | "bob",
  more: object,
): Promise<{ status: number; json: Loose }> {
  const body = { model: "m", prompt: "The cat", temperature: 0, ...more };
  const response = await server.fetch("/v1/completions", body, { headers: headersOf(owner) });
  return { status: response.status, json: await response.json() };
}

const promptOf = (length: number, start = 0): number[] =>
  Array.from({ length }, (_, index) => 5 + ((start + index) % 200));

describe("an answer", () => {
  it("that would be too large is refused by the field that makes it so", async () => {
    const logprobs = { prompt: promptOf(1000), n: 128, logprobs: 20, max_tokens: 1 };
    const echo = await complete(scripted, "ann", { ...logprobs, echo: true });
    expect([echo.status, echo.json.error.param]).toEqual([400, "echo"]);
    expect(echo.json.error.message).toContain("the limit is 67108864");
    const streamed = await complete(scripted, "ann", { ...logprobs, echo: true, stream: true });
    expect([streamed.status, streamed.json.error.param]).toEqual([400, "echo"]);
    const sampled = await complete(scripted, "ann", { ...logprobs, max_tokens: 3000 });
    expect([sampled.status, sampled.json.error.param]).toEqual([400, "logprobs"]);
    const sample = await fetch(`${scripted.url}/api/v1/asample`, {
      method: "POST",
      headers: { ...headersOf("ann"), "x-api-key": "tml-key-ann" },
      body: JSON.stringify({
        base_model: "m",
        prompt: { chunks: [{ type: "encoded_text", tokens: [5] }] },
        num_samples: 1024,
        topk_sample_logprobs: 20,
        sampling_params: { max_tokens: 4000 },
      }),
    });
    expect([sample.status, await sample.text()]).toEqual([
      400,
      expect.stringContaining("topk_sample_logprobs: the answer may come to"),
    ]);
  });

  it("shows an echoed prompt with every choice", async () => {
    engine.says("a", "b", "c");
    const { json } = await complete(scripted, "ann", { echo: true, n: 3, logprobs: 1 });
    for (const [index, { text, logprobs }] of json.choices.entries()) {
      expect(text).toBe(`The cat${"abc"[index]}`);
      expect(logprobs.text_offset.at(-2)).toBe("The cat".length);
      expect(logprobs.tokens.slice(0, -2).join("")).toBe("The cat");
    }
  });
});

describe("a long request", () => {
  it("holds no more places than a turn, and leaves some for others", async () => {
    engine.says("a");
    engine.requests.length = 0;
    const arrived = engine.gates.close("sample");
    const hangUp = new AbortController();
    const large = { model: "m", prompt: Array.from({ length: 64 }, (_, at) => promptOf(900, at)) };
    const attack = scripted.fetch(
      "/v1/completions",
      { ...large, n: 128, max_tokens: 900, stream: true },
      { headers: headersOf("ann"), signal: hangUp.signal },
    );
    attack.catch(() => {});
    await arrived;
    const other = complete(scripted, "bob", { max_tokens: 4 });
    await expect.poll(() => engine.requests.map(({ numSamples }) => numSamples)).toEqual([64, 1]);
    hangUp.abort();
    engine.gates.openAll();
    expect((await other).status).toBe(200);
  });

  it("is divided into turns without a change to what is sampled", async () => {
    engine.says("a");
    engine.requests.length = 0;
    const { status, json } = await complete(scripted, "ann", { n: 128, max_tokens: 2, seed: 5 });
    expect([status, json.choices.length]).toEqual([200, 128]);
    expect(
      engine.requests.map(({ numSamples, firstSample, seed }) => [numSamples, firstSample, seed]),
    ).toEqual([
      [64, 0, 5],
      [64, 64, 5],
    ]);
    expect(json.usage.completion_tokens).toBe(256);
  });

  it(
    "lets the small sample of another owner be answered meanwhile",
    { timeout: 60_000 },
    async () => {
      const hangUp = new AbortController();
      const attack = await real.fetch(
        "/v1/completions",
        {
          model: "m",
          prompt: Array.from({ length: 64 }, (_, at) => promptOf(900, at)),
          n: 128,
          max_tokens: 900,
          ignore_eos: true,
          stream: true,
        },
        { headers: headersOf("ann"), signal: hangUp.signal },
      );
      expect(attack.status).toBe(200);
      const { status, json } = await complete(real, "bob", { max_tokens: 4, ignore_eos: true });
      expect([status, json.usage.completion_tokens]).toEqual([200, 4]);
      hangUp.abort();
    },
  );
});

describe("a stream without a reader", () => {
  it("takes no further turn, and does not keep the server from ending", async () => {
    const own = new ScriptedEngine();
    const server = await OpenAiServer.open({ engine: own, limits: { shutdownGraceMs: 50 } });
    own.says(Array.from({ length: 80 }, (_, index) => 40 + index));
    const body = {
      model: "m",
      prompt: "The cat",
      n: 128,
      max_tokens: 80,
      logprobs: 5,
      stream: true,
    };
    const response = await server.app.handle(
      new Request("http://localhost/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
    expect(response.status).toBe(200);
    await expect.poll(() => own.told, { timeout: 15_000 }).toBe(64 * 80);
    await server.close();
    expect(own.requests).toHaveLength(1);
  });
});

describe("what an owner has spent", () => {
  it("is in the metrics, and its own on the machine screen", async () => {
    await complete(scripted, "bob", { max_tokens: 2 });
    const headers = { ...headersOf("bob"), "x-api-key": "tml-key-bob", "x-tinker-studio": "1" };
    const metrics = await (await fetch(`${scripted.url}/metrics`, { headers })).text();
    expect(metrics).toMatch(/^tinker_owner_spent\{owner="bob",resource="samples"\} [1-9]/m);
    expect(metrics).toMatch(/^tinker_owner_waiting\{owner="bob",resource="streams"\} 0$/m);
    const machine = await fetch(`${scripted.url}/studio/api/machine`, { headers });
    const { accounts } = (await machine.json()) as Loose;
    const own = accounts.find(({ resource }: Loose) => resource === "samples");
    expect(own).toEqual({ resource: "samples", spent: expect.any(Number), waiting: 0 });
  });
});

describe("what is remembered of prompts", () => {
  it("is not found by another owner", async () => {
    const prompt = promptOf(200, 7);
    const cached = async (owner: "ann" | "bob") => {
      const { json } = await complete(real, owner, { prompt, max_tokens: 1 });
      return json.usage.prompt_tokens_details.cached_tokens;
    };
    expect(await cached("ann")).toBe(0);
    expect(await cached("bob")).toBe(0);
    expect(await cached("ann")).toBeGreaterThan(100);
  });
});

describe("a name", () => {
  it("longer than any model is not compared with what there is", async () => {
    const ask = async (name: string) => {
      const response = await fetch(`${scripted.url}/v1/models/${name}`, {
        headers: headersOf("ann"),
      });
      return [response.status, ((await response.json()) as Loose).error.message];
    };
    expect(await ask("n")).toEqual([404, expect.stringContaining("the nearest are m")]);
    expect(await ask("n".repeat(200))).toEqual([404, expect.not.stringContaining("nearest")]);
  });
});

describe("a schema", () => {
  it("with a reference that is no text is refused", async () => {
    const format = { name: "s", schema: { $ref: "#/%zz" } };
    const { status, json } = await complete(scripted, "ann", {
      response_format: { type: "json_schema", json_schema: format },
    });
    expect([status, json.error.param]).toEqual([400, "response_format"]);
  });
});
