import { readdirSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import type { WireInput } from "tinker-ts/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp, type CallOptions } from "./support/test-app.js";

const alice = { key: "tml-alice-key" };
const bob = { key: "tml-bob-key" };

let app: TestApp;
let clock: ManualClock;
let sessionId: string;
let model: string;
let seq: number;
beforeEach(async () => {
  clock = new ManualClock();
  app = await TestApp.open({
    clock,
    limits: { sessionTimeoutMs: 1e9 },
    apiKeys: [
      { key: alice.key, owner: "alice" },
      { key: bob.key, owner: "bob" },
    ],
  });
  sessionId = await app.session(alice);
  model = await app.model(sessionId, { ...alice, seed: 5 });
  seq = 1;
});
afterEach(() => app.dispose());

async function save(more: Partial<WireInput<"SaveWeightsRequest">> = {}) {
  const body = { modelId: model, path: "a", seqId: seq++, ...more };
  return app.result((await app.call("saveWeights", body, alice)).requestId, alice);
}

async function train(): Promise<void> {
  await app.call("forwardBackward", passBody(model, seq++, [[1, 2]]), alice);
  const step = { adamParams: { learningRate: 0.1 }, modelId: model, seqId: seq++ };
  await app.result((await app.call("optimStep", step, alice)).requestId, alice);
}

async function loss(modelId = model, seqId = seq++): Promise<unknown> {
  const { forwardBackwardInput: forwardInput } = passBody(modelId, seqId, [[3, 4]]);
  const { requestId } = await app.call("forward", { forwardInput, modelId, seqId }, alice);
  return (await app.result(requestId, alice))["metrics"];
}

const at = (checkpointId: string, options: CallOptions = alice): CallOptions => ({
  ...options,
  params: { trainingRunId: model, checkpointId },
});
const folders = (): string[] => readdirSync(path.join(app.dataDir, "checkpoints"));

describe("saving", () => {
  it("answers a three-part path and lists the checkpoint", async () => {
    expect(await save()).toEqual({ path: `tinker://${model}/weights/a`, type: "save_weights" });
    const { checkpoints } = await app.call("listCheckpoints", null, at(""));
    expect(checkpoints).toMatchObject([
      { checkpointId: "weights/a", checkpointType: "training", public: false, expiresAt: null },
    ]);
    expect(checkpoints[0]?.sizeBytes).toBeGreaterThan(0);
  });

  it("fails as the user's mistake when the name is taken, and replaces it with overwrite", async () => {
    await save();
    await train();
    const after = await loss();
    expect(await save()).toMatchObject({
      category: "user",
      error: expect.stringContaining("choose another name or set overwrite") as string,
    });
    await save({ overwrite: true });
    await expect.poll(folders).toHaveLength(1);
    await train();
    expect(await loss()).not.toEqual(after);
    const load = {
      modelId: model,
      path: `tinker://${model}/weights/a`,
      optimizer: true,
      seqId: seq++,
    };
    await app.result((await app.call("loadWeights", load, alice)).requestId, alice);
    expect(await loss()).toEqual(after);
  });

  it.each(["", "../x", "a/b", ".hidden", "a b", "x".repeat(200), "nul\u0000"])(
    "refuses the name %j",
    async (name) => {
      expect(await save({ path: name })).toMatchObject({ category: "user" });
      expect(readdirSync(app.dataDir)).not.toContain("checkpoints");
    },
  );

  it("refuses a ttl that is not positive", async () => {
    expect(await save({ ttlSeconds: 0 })).toMatchObject({
      category: "user",
      error: expect.stringContaining("ttl_seconds") as string,
    });
  });

  it("makes up a name when none is given", async () => {
    expect(await save({ path: null })).toMatchObject({ path: `tinker://${model}/weights/000001` });
  });
});

describe("time to live", () => {
  it("deletes a checkpoint and its files when its time is over", async () => {
    await save({ ttlSeconds: 60 });
    const { checkpoints } = await app.call("listCheckpoints", null, at(""));
    expect(checkpoints[0]?.expiresAt?.getTime()).toBe(clock.now() + 60_000);
    await clock.advance(61_000);
    expect((await app.call("listCheckpoints", null, at(""))).checkpoints).toEqual([]);
    await expect.poll(folders).toEqual([]);
  });

  it("can be set, removed, and must be positive", async () => {
    await save();
    await app.call("setCheckpointTtl", { ttlSeconds: 60 }, at("weights/a"));
    await app.call("setCheckpointTtl", { ttlSeconds: null }, at("weights/a"));
    await clock.advance(120_000);
    expect(folders()).toHaveLength(1);
    const bad = await app.fetch("setCheckpointTtl", { ttlSeconds: -1 }, at("weights/a"));
    expect(bad.status).toBe(400);
  });
});

describe("loading", () => {
  it("restores weights and optimizer exactly, or the weights alone", async () => {
    await train();
    await save();
    await train();
    const trainedOn = await loss();
    const tinkerPath = `tinker://${model}/weights/a`;
    for (const optimizer of [true, false]) {
      const body = { modelId: model, path: tinkerPath, optimizer, seqId: seq++ };
      await app.result((await app.call("loadWeights", body, alice)).requestId, alice);
      await train();
      if (optimizer) expect(await loss()).toEqual(trainedOn);
      else expect(await loss()).not.toEqual(trainedOn);
    }
  });

  it("survives a restart even when the checkpoint is gone by then", async () => {
    await train();
    await save();
    const body = {
      modelId: model,
      path: `tinker://${model}/weights/a`,
      optimizer: true,
      seqId: seq++,
    };
    await app.result((await app.call("loadWeights", body, alice)).requestId, alice);
    await train();
    const before = await loss();
    await app.call("deleteCheckpoint", null, at("weights/a"));
    await app.restart();
    expect(await loss()).toEqual(before);
  });

  it("creates a model as its request 0, and its requests may follow at once", async () => {
    await train();
    await save();
    const expected = await loss();
    const created = await app.call(
      "loadWeights",
      { sessionId, modelSeqId: 1, path: `tinker://${model}/weights/a`, optimizer: true },
      alice,
    );
    expect(created.modelId).toBe(`${sessionId}:train:1`);
    expect(await loss(`${sessionId}:train:1`, 1)).toEqual(expected);
    expect(await app.result(created.requestId, alice)).toMatchObject({
      model_id: `${sessionId}:train:1`,
    });
  });

  it("refuses a checkpoint of another rank", async () => {
    await save();
    const { requestId } = await app.call(
      "createModel",
      { sessionId, modelSeqId: 2, baseModel: "toy", loraConfig: { rank: 4 } },
      alice,
    );
    await app.result(requestId, alice);
    const modelId = `${sessionId}:train:2`;
    const body = { modelId, path: `tinker://${model}/weights/a`, optimizer: false, seqId: 1 };
    const load = await app.call("loadWeights", body, alice);
    expect(await app.result(load.requestId, alice)).toMatchObject({
      category: "user",
      error: expect.stringContaining("rank 8") as string,
    });
  });

  it("takes the owner's token for a private checkpoint of another owner, and keeps it nowhere", async () => {
    await save();
    const bobSession = await app.session(bob);
    const body = {
      sessionId: bobSession,
      modelSeqId: 0,
      path: `tinker://${model}/weights/a`,
      optimizer: false,
    };
    expect((await app.fetch("loadWeights", body, bob)).status).toBe(404);
    const withToken = { ...body, weightsAccessToken: alice.key };
    const { requestId } = await app.call("loadWeights", withToken, bob);
    const bobsModel = `${bobSession}:train:0`;
    expect(await app.result(requestId, bob)).toMatchObject({ model_id: bobsModel });
    const again = { modelId: bobsModel, path: body.path, optimizer: false };
    const wrong = { ...again, seqId: 1, weightsAccessToken: "tml-nobodys-key" };
    const refused = await app.call("loadWeights", wrong, bob);
    const right = { ...again, seqId: 2, weightsAccessToken: alice.key };
    const loaded = await app.call("loadWeights", right, bob);
    expect(await app.result(refused.requestId, bob)).toMatchObject({
      error: expect.stringContaining("weights_access_token") as string,
      category: "user",
    });
    expect(await app.result(loaded.requestId, bob)).toMatchObject({ type: "load_weights" });
    await app.stop();
    const { readFileSync } = await import("node:fs");
    const database = readFileSync(path.join(app.dataDir, "server.db"));
    expect(database.includes(alice.key)).toBe(false);
  });
});

describe("sharing", () => {
  it("lets others read a published checkpoint and nothing else", async () => {
    await save();
    const info = { tinkerPath: `tinker://${model}/weights/a` };
    expect((await app.fetch("weightsInfo", info, bob)).status).toBe(404);
    await app.call("publishCheckpoint", null, at("weights/a"));
    expect(await app.call("weightsInfo", info, bob)).toMatchObject({
      baseModel: "toy",
      isLora: true,
      loraRank: 8,
      trainMlp: true,
    });
    const { requestId } = await app.call(
      "sample",
      { modelPath: info.tinkerPath, prompt: [1], samplingParams: { maxTokens: 1 } },
      bob,
    );
    expect(await app.result(requestId, bob)).toHaveProperty("sequences");
    for (const name of ["deleteCheckpoint", "publishCheckpoint", "unpublishCheckpoint"] as const) {
      expect((await app.fetch(name, null, at("weights/a", bob))).status).toBe(404);
    }
    await app.call("unpublishCheckpoint", null, at("weights/a"));
    expect((await app.fetch("weightsInfo", info, bob)).status).toBe(404);
  });

  it("answers 409 without a retry when nothing would change", async () => {
    await save();
    const response = await app.fetch("unpublishCheckpoint", null, at("weights/a"));
    expect(response.status).toBe(409);
    expect(response.headers.get("x-should-retry")).toBe("false");
  });
});

it("deletes a checkpoint with its files; sampling from it says so", async () => {
  await save();
  await app.call("deleteCheckpoint", null, at("weights/a"));
  expect(folders()).toEqual([]);
  const response = await app.fetch("deleteCheckpoint", null, at("weights/a"));
  expect(response.status).toBe(404);
});

it("hands out archives by a signed link that anyone may follow until it expires", async () => {
  await save();
  const answer = await app.fetch("getCheckpointArchiveUrl", null, at("weights/a"));
  expect(answer.status).toBe(302);
  expect(Date.parse(answer.headers.get("expires") ?? "")).toBe(clock.now() + 900_000);
  const url = answer.headers.get("location")!;
  const archive = await app.handle(new Request(url));
  expect(archive.headers.get("content-type")).toBe("application/gzip");
  const tar = gunzipSync(Buffer.from(await archive.arrayBuffer()));
  expect(tar.includes("adapter.json")).toBe(true);
  expect((await app.handle(new Request(url.replace("subject=", "subject=x")))).status).toBe(403);
  await clock.advance(901_000);
  expect((await app.handle(new Request(url))).status).toBe(403);
});

it("removes files that a crash has left without a record", async () => {
  await save();
  await app.stop();
  const { mkdirSync, writeFileSync } = await import("node:fs");
  mkdirSync(path.join(app.dataDir, "checkpoints", "leftover"));
  mkdirSync(path.join(app.dataDir, "snapshots", "leftover"), { recursive: true });
  writeFileSync(path.join(app.dataDir, "blobs", "leftover"), "x");
  await app.start();
  expect(folders()).toHaveLength(1);
  expect(readdirSync(path.join(app.dataDir, "snapshots"))).toEqual([]);
  expect(readdirSync(path.join(app.dataDir, "blobs"))).toEqual([]);
});
