import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { RequestFailedError, ServiceClient, type DatumLike, type TrainingClient } from "tinker-ts";
import { encodeJson } from "tinker-ts/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type RunningServer } from "../src/index.js";
import { realModels } from "./support/real-models.js";

/*
 * Ten things that another server got wrong. Each test would fail on that server.
 */

const adam = { learningRate: 0.05 };
const apiKey = "tml-defects-key";

function datum(tokens: readonly number[], weight = 1): DatumLike {
  const weights = tokens.slice(1).map(() => weight);
  return {
    modelInput: tokens.slice(0, -1),
    lossFnInputs: { target_tokens: tokens.slice(1), weights },
  };
}

const lesson = [datum([5, 8, 13, 21, 34])];
const prompt = [5, 8, 13, 21, 34];

let dataDir: string;
let server: RunningServer;
let service: ServiceClient;
beforeAll(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-defects-"));
  server = await startServer({ port: 0, dataDir, models: realModels, logLevel: "silent" });
  service = new ServiceClient({ baseUrl: server.url, apiKey, telemetry: false });
});
afterAll(async () => {
  await service.close();
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const train = (seed = 1): Promise<TrainingClient> =>
  service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4, seed });
const lossOf = async (client: TrainingClient): Promise<number> =>
  (await client.forward(lesson, "cross_entropy")).metrics["loss:sum"]!;

async function learn(client: TrainingClient, options: object = adam): Promise<void> {
  void client.forwardBackward(lesson, "cross_entropy");
  await client.optimStep(options);
}

/** Speaks to the server without a client in between. */
async function post(endpoint: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/api/v1/${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": apiKey },
    body: JSON.stringify(body),
  });
  return { status: response.status, ...((await response.json()) as object) };
}

it("sampling an older checkpoint after further training uses the older weights", async () => {
  const client = await train();
  const early = await client.saveWeightsAndGetSamplingClient();
  const before = await early.computeLogprobs(prompt);
  await learn(client);
  const late = await client.saveWeightsAndGetSamplingClient();
  expect(await late.computeLogprobs(prompt)).not.toEqual(before);
  expect(await early.computeLogprobs(prompt)).toEqual(before);
});

it("sampling an older checkpoint leaves the weights in training alone", async () => {
  const client = await train();
  const { path: early } = await client.saveWeightsForSampler("early");
  await learn(client);
  const loss = await lossOf(client);
  const sampler = await client.createSamplingClient(early);
  await sampler.sample({ prompt, numSamples: 4, samplingParams: { maxTokens: 8 } });
  expect(await lossOf(client)).toBe(loss);
});

it("weight decay of one model's step does not decay another's adapter", async () => {
  const [still, busy] = [await train(1), await train(2)];
  await learn(still);
  const loss = await lossOf(still);
  await learn(busy, { learningRate: 0.1, weightDecay: 1 });
  expect(await lossOf(still)).toBe(loss);
});

it("gradients of an unloaded model do not reach the next one", async () => {
  const clean = await train(7);
  await learn(clean);
  const left = await train(3);
  await left.forwardBackward([datum([200, 100, 50, 25])], "cross_entropy");
  await post("unload_model", { model_id: left.modelId, type: "unload_model" });
  const next = await train(7);
  await learn(next);
  expect(await lossOf(next)).toBe(await lossOf(clean));
});

describe("requests run by number, not by arrival", () => {
  it("waits at a gap and accepts no number twice", async () => {
    const client = await train();
    const step = (seqId: number, learningRate: number) =>
      post(
        "optim_step",
        encodeJson("OptimStepRequest", {
          adamParams: { learningRate },
          modelId: client.modelId,
          seqId,
        }),
      );
    const third = await step(3, 0.1);
    const second = await step(2, 0.1);
    expect([third["status"], second["status"]]).toEqual([200, 200]);
    const again = await step(2, 0.2);
    expect(again).toMatchObject({ status: 409 });
    const first = await step(1, 0.1);
    const ids = [first, second, third].map(({ request_id }) => request_id);
    const steps: unknown[] = [];
    for (const request_id of ids) {
      const { metrics } = await post("retrieve_future", { request_id });
      steps.push((metrics as Record<string, number>)["step:max"]);
    }
    expect(steps).toEqual([1, 2, 3]);
  });
});

it("the loss is a sum: duplicating a datum or doubling weights doubles it", async () => {
  const client = await train();
  const loss = await lossOf(client);
  const twice = await client.forward([...lesson, ...lesson], "cross_entropy");
  const heavy = await client.forward([datum([5, 8, 13, 21, 34], 2)], "cross_entropy");
  expect(twice.metrics["loss:sum"]).toBeCloseTo(2 * loss, 3);
  expect(heavy.metrics["loss:sum"]).toBeCloseTo(2 * loss, 3);
});

describe("nothing is computed from what makes no sense", () => {
  it.each([
    ["an unknown base model", { base_model: "none" }],
    ["an unknown checkpoint", { model_path: "tinker://a/sampler_weights/b" }],
    ["max_tokens beyond the context", { base_model: "qwen3", max_tokens: 9999 }],
    ["an empty prompt", { base_model: "qwen3", tokens: [] }],
    ["a token outside the vocabulary", { base_model: "qwen3", tokens: [310] }],
    ["a negative token", { base_model: "qwen3", tokens: [-1] }],
  ])("sampling from %s is refused with a message", async (_, given) => {
    const {
      max_tokens = 1,
      tokens = [1],
      ...address
    } = given as {
      max_tokens?: number;
      tokens?: number[];
    };
    const answer = await post("asample", {
      ...address,
      prompt: { chunks: [{ type: "encoded_text", tokens }] },
      sampling_params: { max_tokens },
    });
    expect([400, 404]).toContain(answer["status"]);
    expect(answer["error"]).toEqual(expect.any(String));
  });

  it("training without target_tokens fails as the user's mistake, not the server's", async () => {
    const client = await train();
    const failure: unknown = await client
      .forwardBackward([{ modelInput: [1, 2] }], "cross_entropy")
      .then(undefined, (error: unknown) => error);
    expect(failure).toBeInstanceOf(RequestFailedError);
    expect(failure).toMatchObject({ category: "user" });
  });
});

describe("no field is ignored", () => {
  it("train_attn, train_mlp and train_unembed choose what is saved", async () => {
    const client = await service.createLoraTrainingClient({
      baseModel: "qwen3",
      rank: 4,
      trainAttn: false,
      trainUnembed: false,
    });
    const { path: saved } = await client.saveState("mlp-only");
    const info = await service.createRestClient().getWeightsInfoByTinkerPath(saved);
    expect(info).toMatchObject({ trainAttn: false, trainMlp: true, trainUnembed: false });
  });

  it("grad_clip_norm bounds the gradient", async () => {
    const [free, clipped] = [await train(), await train()];
    await learn(free, { learningRate: 0.05, eps: 1 });
    await learn(clipped, { learningRate: 0.05, eps: 1, gradClipNorm: 1e-6 });
    expect(Math.abs((await lossOf(clipped)) - (await lossOf(await train())))).toBeLessThan(1e-3);
    expect(await lossOf(free)).not.toBeCloseTo(await lossOf(clipped), 2);
  });

  it("ttl_seconds and overwrite do what they say", async () => {
    const client = await train();
    await client.saveState("kept", { ttlSeconds: 1000 });
    await expect(client.saveState("kept")).rejects.toMatchObject({ category: "user" });
    await client.saveState("kept", { overwrite: true });
    const { checkpoints } = await service.createRestClient().listCheckpoints(client.modelId);
    expect(checkpoints).toMatchObject([{ checkpointId: "weights/kept", expiresAt: null }]);
  });
});

it("sampler saves answer a path of three parts", async () => {
  const client = await train();
  const { path: saved } = await client.saveWeightsForSampler("name");
  expect(saved).toBe(`tinker://${client.modelId}/sampler_weights/name`);
});

it("hundreds of requests at once are all answered, also when others stop waiting", async () => {
  const sampler = await service.createSamplingClient({ baseModel: "qwen3" });
  const answers = await Promise.allSettled(
    Array.from({ length: 600 }, (_, index) => {
      const abort = new AbortController();
      const future = sampler.sample({
        prompt: [1, 2, index % 300],
        samplingParams: { maxTokens: 4, seed: index },
        signal: abort.signal,
      });
      if (index % 3 === 0) setTimeout(() => abort.abort(), index % 50);
      return future;
    }),
  );
  const kept = answers.filter((_, index) => index % 3 !== 0);
  expect(kept.filter(({ status }) => status === "fulfilled")).toHaveLength(400);
}, 60_000);
