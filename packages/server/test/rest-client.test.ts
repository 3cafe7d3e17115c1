import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { readAdapter, readModelConfig } from "@tinker-ts/engine";
import { RestClient, type ServiceClient, type TrainingClient } from "tinker-ts";
import { decodeJson } from "tinker-ts/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { places, type Place } from "./support/places.js";
import { realModels } from "./support/real-models.js";

const keys = {
  alice: { key: "tml-alice-key", owner: "alice", email: "alice@example.org" },
  bob: { key: "tml-bob-key", owner: "bob" },
};

/** The methods that were called on the recorded client. */
const called = new Set<string>();

function recorded(client: RestClient): RestClient {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      called.add(String(name));
      return value.bind(target) as unknown;
    },
  });
}

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe.each(places)("RestClient $name", ({ open }) => {
  let folder: string;
  let place: Place;
  let service: ServiceClient;
  let stranger: ServiceClient;
  let rest: RestClient;
  let training: TrainingClient;
  let sessionId: string;
  let statePath: string;
  let samplerPath: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-rest-"));
    called.clear();
    place = await open({ apiKeys: Object.values(keys) });
    service = place.client({ apiKey: keys.alice.key, userMetadata: { purpose: "test" } });
    stranger = place.client({ apiKey: keys.bob.key });
    rest = recorded(service.createRestClient());
    training = await service.createLoraTrainingClient({
      baseModel: "qwen3",
      rank: 4,
      userMetadata: { run: "one" },
    });
    [sessionId = ""] = training.modelId.split(":");
    const data = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
    await training.trainStep(data, "cross_entropy");
    statePath = (await training.saveState("final")).path;
    samplerPath = (await training.saveWeightsForSampler("final")).path;
  });

  afterAll(async () => {
    await place.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("reports the caller", async () => {
    expect(await rest.whoami()).toMatchObject({
      userUrn: "urn:tinker-ts:user:alice",
      email: "alice@example.org",
    });
  });

  it("finds runs by id, by path and in lists", async () => {
    const run = await rest.getTrainingRun(training.modelId);
    expect(run).toMatchObject({
      trainingRunId: training.modelId,
      baseModel: "qwen3",
      modelOwner: "alice",
      loraRank: 4,
      userMetadata: { run: "one" },
      lastCheckpoint: { tinkerPath: statePath },
      lastSamplerCheckpoint: { tinkerPath: samplerPath },
    });
    expect(await rest.getTrainingRunByTinkerPath(statePath)).toEqual(run);
    expect((await rest.listTrainingRuns()).trainingRuns).toEqual([run]);
    expect(await allOf(rest.trainingRuns())).toEqual([run]);
    expect((await stranger.createRestClient().listTrainingRuns()).trainingRuns).toEqual([]);
  });

  it("lists checkpoints of a run and of a user", async () => {
    const ids = ["sampler_weights/final", "weights/final"];
    const { checkpoints } = await rest.listCheckpoints(training.modelId);
    expect(checkpoints.map(({ checkpointId }) => checkpointId).toSorted()).toEqual(ids);
    const mine = await rest.listUserCheckpoints({ limit: 1 });
    expect(mine.checkpoints).toHaveLength(1);
    expect(mine.cursor?.totalCount).toBe(2);
    const all = await allOf(rest.userCheckpoints());
    expect(all.map(({ checkpointId }) => checkpointId).toSorted()).toEqual(ids);
  });

  it("hands out archives with adapters in PEFT's form", async () => {
    const directory = path.join(folder, "adapter");
    const { files } = await rest.downloadCheckpoint(samplerPath, { directory });
    expect(files.toSorted()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "checkpoint_complete",
      "manifest.json",
    ]);
    const config = await readModelConfig(realModels.qwen3);
    const adapter = await readAdapter(directory, { config });
    expect(adapter).toMatchObject({ rank: 4, alpha: 32, baseModel: "qwen3" });
    expect(adapter.tensors.has("base_model.model.lm_head.lora_A.weight")).toBe(true);
    const { url, expires } = await rest.getCheckpointArchiveUrlFromTinkerPath(samplerPath);
    expect(expires.getTime()).toBeGreaterThan(Date.now());
    const byId = await rest.getCheckpointArchiveUrl(training.modelId, "weights/final");
    for (const link of [url, byId.url]) expect((await place.fetch(link)).status).toBe(200);
  });

  it("takes an adapter back that it handed out", async () => {
    const directory = path.join(folder, "to-and-fro");
    await rest.downloadCheckpoint(samplerPath, { directory });
    const back = `tinker://${training.modelId}/weights/back`;
    await rest.uploadCheckpoint(back, { directory });
    expect(await rest.getWeightsInfoByTinkerPath(back)).toMatchObject({ loraRank: 4 });
    await rest.deleteCheckpointFromTinkerPath(back);
  });

  it("shares checkpoints, limits their time and deletes them", async () => {
    const { path: shared } = await training.saveState("shared");
    const other = stranger.createRestClient();
    await expect(other.getWeightsInfoByTinkerPath(shared)).rejects.toThrow("404");
    await rest.publishCheckpointFromTinkerPath(shared);
    for (const reader of [rest, other]) {
      expect(await reader.getWeightsInfoByTinkerPath(shared)).toMatchObject({ baseModel: "qwen3" });
    }
    const copy = await stranger.createTrainingClientFromState(shared);
    expect((await copy.getInfo()).loraRank).toBe(4);
    await rest.unpublishCheckpointFromTinkerPath(shared);
    await rest.setCheckpointTtlFromTinkerPath(shared, 3600);
    const { checkpoints } = await rest.listCheckpoints(training.modelId);
    const found = checkpoints.find(({ tinkerPath }) => tinkerPath === shared);
    expect(found?.expiresAt?.getTime()).toBeGreaterThan(Date.now());
    await rest.setCheckpointTtlFromTinkerPath(shared, null);
    await rest.deleteCheckpointFromTinkerPath(shared);
    await expect(rest.deleteCheckpoint(training.modelId, "weights/shared")).rejects.toThrow("404");
  });

  it("knows sessions, their samplers and their project", async () => {
    const sampler = await service.createSamplingClient({ modelPath: samplerPath });
    const session = await rest.getSession(sessionId);
    expect(session.trainingRunIds).toContain(training.modelId);
    expect(session.samplerIds).toContain(sampler.samplingSessionId);
    expect(await rest.getSampler(sampler.samplingSessionId)).toMatchObject({
      baseModel: "qwen3",
      modelPath: samplerPath,
    });
    expect((await rest.listSessions()).sessions).toEqual([sessionId]);
    expect(await allOf(rest.sessions())).toEqual([sessionId]);
    await rest.assignSessionProject(sessionId, "apollo");
    const { trainingRuns } = await rest.listTrainingRuns({ projectId: "apollo" });
    expect(trainingRuns).toHaveLength(1);
  });

  it("exports a trace with what really happened", async () => {
    const response = await place.fetch(await rest.exportSessionTrace(sessionId));
    const { traceEvents } = (await response.json()) as {
      traceEvents: { name: string; ph: string }[];
    };
    const names = traceEvents.filter(({ ph }) => ph === "X").map(({ name }) => name.split(" ")[0]);
    expect(names.slice(0, 3)).toEqual(["create_model", "forward_backward", "optim_step"]);
    const file = path.join(folder, "trace.json");
    await rest.downloadSessionTrace(sessionId, { file });
    expect(JSON.parse(readFileSync(file, "utf8"))).toHaveProperty("traceEvents");
  });

  it("accounts for tokens and checkpoints, and keeps an audit log", async () => {
    const now = new Date();
    const hour = 3_600_000;
    const start = new Date(Math.floor(now.getTime() / hour) * hour - hour);
    const { data, sessions } = await rest.getBillingUsage({
      startingOn: start,
      endingBefore: new Date(start.getTime() + 3 * hour),
    });
    const trained = data.find(({ eventInfo }) => eventInfo.type === "training");
    expect(trained).toMatchObject({ baseModel: "qwen3", userId: "alice", sessionId });
    expect(sessions[sessionId]?.userMetadata).toEqual({ purpose: "test" });
    const { entries } = await rest.getAuditLog({ eventType: "checkpoints" });
    expect(entries.map(({ event }) => event)).toContain("checkpoint.created");
    expect((await stranger.createRestClient().getAuditLog()).entries).not.toContainEqual(
      expect.objectContaining({ tinkerPath: statePath }),
    );
  });

  it("lets no one see or touch what belongs to another", async () => {
    const other = stranger.createRestClient();
    const attempts = [
      other.getTrainingRun(training.modelId),
      other.getTrainingRun(training.modelId, { accessScope: "accessible" }),
      other.listCheckpoints(training.modelId),
      other.getCheckpointArchiveUrlFromTinkerPath(statePath),
      other.deleteCheckpointFromTinkerPath(statePath),
      other.publishCheckpointFromTinkerPath(statePath),
      other.setCheckpointTtlFromTinkerPath(statePath, 1),
      other.getSession(sessionId),
      other.assignSessionProject(sessionId, "mine"),
      other.exportSessionTrace(sessionId),
      other.getSampler(`${sessionId}:sample:0`),
      stranger.createSamplingClient({ modelPath: samplerPath }),
      stranger.createTrainingClientFromState(statePath),
    ];
    for (const attempt of await Promise.allSettled(attempts)) {
      expect(attempt).toMatchObject({ status: "rejected", reason: { status: 404 } });
    }
  });

  it("hands out the tokenizer of a base model", async () => {
    const query = new URLSearchParams({ model: "qwen3" });
    const response = await place.fetch(`/api/v1/tokenizer?${query.toString()}`, {
      "x-api-key": keys.alice.key,
    });
    const files = decodeJson("GetTokenizerResponse", await response.text());
    expect(files.model).toBe("qwen3");
    expect(files.tokenizer).toHaveProperty("model");
    expect(files.tokenizerConfig).not.toBeNull();
    const tokenizer = await training.getTokenizer();
    expect(tokenizer.decode(tokenizer.encode("hello"))).toBe("hello");
  });

  it("takes lines of loggers", async () => {
    const line = { run: "log-1", writer: "w", n: 1, kind: "open", name: "garden" };
    const answer = await rest.postLogs(`${JSON.stringify(line)}\n`);
    expect(answer.stored).toEqual({ "log-1": { w: 1 } });
  });

  it("names the external weights that this server does not offer", async () => {
    const address = `tinker://${training.modelId}/external_weights/out`;
    await expect(rest.getExternalWeightsUrls(address)).rejects.toThrow(
      /does not offer GET .*external_weights_urls, which clients call since 0.28.0/,
    );
  });

  it("has been called in every way there is", () => {
    const methods = Object.getOwnPropertyNames(RestClient.prototype);
    expect([...called].toSorted()).toEqual(
      methods.filter((name) => name !== "constructor").toSorted(),
    );
  });
});
