import { ServiceClient, type SamplingClient } from "tinker-ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { OpenAiServer } from "../support/openai-server.js";

let server: OpenAiServer;
let service: ServiceClient;
let sampling: SamplingClient;
beforeAll(async () => {
  server = await OpenAiServer.open();
  service = new ServiceClient({ baseUrl: server.url, apiKey: "tml-any-key", telemetry: false });
  sampling = await service.createSamplingClient({ baseModel: "m" });
});
afterAll(async () => {
  await service.close();
  await server.close();
});

const prompt = [300, 301, 302];

it("samples what fulfils a schema, and ends when it is whole", async () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer", minimum: 10, maximum: 99 }, ok: { type: "boolean" } },
    required: ["n", "ok"],
    additionalProperties: false,
  };
  const { sequences } = await sampling.sample({
    prompt,
    numSamples: 8,
    samplingParams: { schema, maxTokens: 60 },
  });
  for (const { tokens, stopReason } of sequences) {
    const value = JSON.parse(server.tokenizer.decode(tokens)) as { n: number; ok: boolean };
    expect(value.n).toBeGreaterThanOrEqual(10);
    expect([typeof value.ok, stopReason]).toEqual(["boolean", "stop"]);
  }
  let text = "";
  const stream = sampling.stream({ prompt, samplingParams: { schema, maxTokens: 60 } });
  for await (const token of stream) text += token.text ?? "";
  JSON.parse(text);
});

it("shapes what is drawn", async () => {
  const tokensOf = async (more: object): Promise<number[]> => {
    const samplingParams = { maxTokens: 12, seed: 3, ...more };
    const { sequences } = await sampling.sample({ prompt, samplingParams });
    return [...sequences[0]!.tokens];
  };
  const greedy = await tokensOf({ temperature: 0 });
  expect(await tokensOf({ minP: 1 })).toEqual(greedy);
  expect(new Set(await tokensOf({ logitBias: { 44: 100 } }))).toEqual(new Set([44]));
  const varied = await tokensOf({ temperature: 0, presencePenalty: 100 });
  expect(new Set(varied).size).toBe(varied.length);
  const stopped = { temperature: 0, stop: [greedy[0]!] };
  expect(await tokensOf(stopped)).toHaveLength(1);
  expect((await tokensOf({ ...stopped, minTokens: 5 })).length).toBeGreaterThanOrEqual(5);
});

it.each(["proto", "json"] as const)("reports the most probable tokens (%s)", async (dialect) => {
  await using client = new ServiceClient({
    baseUrl: server.url,
    apiKey: "tml-any-key",
    telemetry: false,
    dialect,
  });
  const sampler = await client.createSamplingClient({ baseModel: "m" });
  const call = { prompt, numSamples: 2, samplingParams: { maxTokens: 6, topLogprobs: 3, seed: 5 } };
  const { sequences } = await sampler.sample(call);
  for (const { tokens, logprobs, topLogprobs = [], unknownFields } of sequences) {
    expect(topLogprobs.map((row) => row.length)).toEqual([...tokens].map(() => 3));
    expect(unknownFields).toBeUndefined();
    topLogprobs.forEach((row, position) => {
      const values = row.map(([, logprob]) => logprob);
      expect(values).toEqual(values.toSorted((a, b) => b - a));
      const drawn = row.find(([token]) => token === tokens[position]);
      if (drawn) expect(drawn[1]).toBeCloseTo(logprobs![position]!, 5);
    });
  }
  const stream = sampler.stream({ ...call, tokenizer: null });
  const streamed: (typeof sequences)[number]["topLogprobs"][] = [[], []];
  for await (const { index, topLogprobs } of stream) streamed[index]!.push([...topLogprobs!]);
  const whole = (await stream.response).sequences.map((sequence) => sequence.topLogprobs);
  expect(streamed).toEqual(whole);
  expect(whole.flat(3).map((value) => value!.toFixed(4))).toEqual(
    sequences
      .flatMap(({ topLogprobs = [] }) => topLogprobs.flat(2))
      .map((value) => value.toFixed(4)),
  );
});

it("refuses what cannot be done, by its name", async () => {
  const refused: [object, string][] = [
    [{ schema: { not: {} } }, "not"],
    [{ minP: 2 }, "min_p"],
    [{ logitBias: { 99999: 1 } }, "99999"],
    [{ minTokens: 1.5 }, "min_tokens"],
    [{ minP: "much" }, "samplingParams.minP"],
  ];
  for (const [samplingParams, name] of refused) {
    const asked = async () => sampling.sample({ prompt, samplingParams });
    await expect(asked()).rejects.toThrow(name);
  }
});

it("does not ask servers that would ignore it", async () => {
  const foreign = new ServiceClient({
    baseUrl: server.url,
    apiKey: "tml-any-key",
    telemetry: false,
    fetch: async (request) => {
      if (!request.url.endsWith("get_server_capabilities")) return fetch(request);
      return Response.json({ supported_models: [] });
    },
  });
  try {
    const client = await foreign.createSamplingClient({ baseModel: "m" });
    const asked = client.sample({ prompt, samplingParams: { minP: 0.1, maxTokens: 2 } });
    await expect(asked).rejects.toThrow("tinker-ts servers only");
    await client.sample({ prompt, samplingParams: { maxTokens: 2 } });
  } finally {
    await foreign.close();
  }
});
