import OpenAI from "openai";
import { ServiceClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OpenAiServer, question, type Loose } from "../support/openai-server.js";

let server: OpenAiServer;
let saved: string;
let clients: ServiceClient[];
let asSaved: unknown;

const service = (apiKey: string): ServiceClient => {
  const client = new ServiceClient({ baseUrl: server.url, apiKey, telemetry: false });
  clients.push(client);
  return client;
};

beforeAll(async () => {
  clients = [];
  server = await OpenAiServer.open({
    apiKeys: [
      { key: "tml-key-of-ann", owner: "ann" },
      { key: "tml-key-of-bob", owner: "bob" },
    ],
    aliases: { "support-bot": "m" },
  });
  const training = await service("tml-key-of-ann").createLoraTrainingClient({
    baseModel: "m",
    rank: 4,
  });
  const datum = {
    modelInput: [1, 2, 3],
    lossFnInputs: { target_tokens: [2, 3, 4], weights: [1, 1, 1] },
  };
  const train = async (): Promise<void> => {
    await training.forwardBackward([datum], "cross_entropy");
    await training.optimStep({ learningRate: 0.05 });
  };
  await train();
  saved = (await training.saveWeightsForSampler("s")).path;
  asSaved = await logprobsOf(saved);
  // Weights go on; what was saved stays.
  await train();
});
afterAll(async () => {
  for (const client of clients) await client.close();
  await server.close();
});

/** What a model says of its first tokens: other weights say something else. */
async function logprobsOf(model: string): Promise<unknown> {
  const answer = await ann().chat.completions.create({ ...chat, model, logprobs: true });
  return answer.choices[0]!.logprobs;
}

const ann = () => server.client({ apiKey: "tml-key-of-ann" });
const bob = () => server.client({ apiKey: "tml-key-of-bob" });

describe("models", () => {
  it("lists base models, aliases and the caller's checkpoints in the form that clients iterate", async () => {
    const ids: string[] = [];
    for await (const model of ann().models.list()) {
      expect(model).toMatchObject({ object: "model", owned_by: expect.any(String) });
      expect(Number.isInteger(model.created)).toBe(true);
      ids.push(model.id);
    }
    expect(ids).toEqual(["support-bot", "m", saved]);
    const others = (await bob().models.list()).data.map(({ id }) => id);
    expect(others).toEqual(["support-bot", "m"]);
  });

  it("finds one by its percent-encoded and by its raw path", async () => {
    expect(await ann().models.retrieve(saved)).toMatchObject({ id: saved, parent: "m" });
    const headers = { authorization: "Bearer tml-key-of-ann" };
    const raw = await fetch(`${server.url}/v1/models/${saved}`, { headers });
    expect(await raw.json()).toMatchObject({ id: saved });
    expect(await ann().models.retrieve("support-bot")).toMatchObject({ root: "m" });
  });

  it("says which name is unknown and which are near", async () => {
    await expect(ann().models.retrieve("nope")).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
    });
    const asked = ann().chat.completions.create({ ...chat, model: "suport-bot" });
    await expect(asked).rejects.toMatchObject({
      status: 404,
      param: "model",
      code: "model_not_found",
      message: expect.stringContaining("support-bot"),
    });
    const { status, json } = await withKey("tml-key-of-ann", { ...chat, model: undefined });
    expect([status, json.error.param]).toEqual([400, "model"]);
  });

  it("samples from a checkpoint what the sampling client samples, as it was saved", async () => {
    const answer = await ann().chat.completions.create({
      ...chat,
      model: saved,
      temperature: 1,
      seed: 7,
      ...({ return_token_ids: true } as object),
    });
    const { prompt_token_ids: prompt } = answer as unknown as { prompt_token_ids: number[] };
    const { token_ids: tokens } = answer.choices[0] as unknown as { token_ids: number[] };
    expect(answer.model).toBe(saved);
    const sampling = await service("tml-key-of-ann").createSamplingClient({ modelPath: saved });
    const { sequences } = await sampling.sample({
      prompt,
      numSamples: 1,
      samplingParams: { maxTokens: 8, seed: 7, stop: [2047, 2045] },
    });
    expect(tokens).toEqual([...sequences[0]!.tokens]);
    expect(await logprobsOf(saved)).toEqual(asSaved);
    expect(await logprobsOf("m")).not.toEqual(asSaved);
  });

  it("hides checkpoints of others until they are published", async () => {
    const ask = () => bob().chat.completions.create({ ...chat, model: saved });
    await expect(ask()).rejects.toMatchObject({ status: 404, code: "model_not_found" });
    const rest = service("tml-key-of-ann").createRestClient();
    await rest.publishCheckpointFromTinkerPath(saved);
    expect((await ask()).model).toBe(saved);
    await rest.unpublishCheckpointFromTinkerPath(saved);
  });

  it("refuses training weights by name", async () => {
    const path = saved.replace("sampler_weights", "weights");
    const asked = ann().chat.completions.create({ ...chat, model: path });
    await expect(asked).rejects.toMatchObject({ status: 404 });
  });
});

const chat = {
  ...question,
  max_tokens: 8,
  messages: [{ role: "user" as const, content: "Hello" }],
};

async function withKey(key: string, body: unknown, header = "authorization") {
  const value = header === "authorization" ? `Bearer ${key}` : key;
  const response = await server.fetch("/v1/chat/completions", body, {
    headers: { "content-type": "application/json", ...(key === "" ? {} : { [header]: value }) },
  });
  return { status: response.status, json: (await response.json()) as Loose };
}

describe("keys and addresses", () => {
  it("asks for a key, in the form that clients understand", async () => {
    const { status, json } = await withKey("", chat);
    expect([status, json.error.type, json.error.code]).toEqual([
      401,
      "authentication_error",
      "invalid_api_key",
    ]);
    const wrong = server.client({ apiKey: "tml-wrong" }).models.list();
    await expect(wrong).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  });

  it("takes the key as a bearer token or in X-API-Key", async () => {
    expect((await withKey("tml-key-of-ann", chat)).status).toBe(200);
    expect((await withKey("tml-key-of-ann", chat, "x-api-key")).status).toBe(200);
  });

  it("answers under the hosted service's address too", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/oai/api/v1`, apiKey: "tml-key-of-ann" });
    const [here, there] = await Promise.all([
      ann().chat.completions.create(chat),
      client.chat.completions.create(chat),
    ]);
    expect(there.choices).toEqual(here.choices);
  });

  it("answers unknown addresses in its own form", async () => {
    const headers = { authorization: "Bearer tml-key-of-ann" };
    for (const [method, route] of [
      ["POST", "/v1/nothing"],
      ["GET", "/v1/chat/completions"],
      ["DELETE", "/oai/api/v1/models"],
    ] as const) {
      const response = await fetch(server.url + route, { method, headers });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({
        error: { type: "invalid_request_error", code: "unknown_url", param: null },
      });
    }
  });
});
