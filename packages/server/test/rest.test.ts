import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
let clock: ManualClock;
let sessionId: string;
let model: string;
beforeEach(async () => {
  clock = new ManualClock();
  app = await TestApp.open({ clock, limits: { sessionTimeoutMs: 1e9 } });
  const body = { tags: ["t"], userMetadata: { team: "a", size: 3 }, sdkVersion: "0.25.0" };
  sessionId = (await app.call("createSession", { ...body, projectId: "p1" })).sessionId;
  model = await app.model(sessionId);
});
afterEach(() => app.dispose());

async function work(): Promise<void> {
  await app.call("forwardBackward", passBody(model, 1, [[1, 2, 3]]));
  await app.call("optimStep", { adamParams: {}, modelId: model, seqId: 2 });
  await app.call("saveWeights", { modelId: model, path: "a", seqId: 3 });
  const save = { modelId: model, path: "s", seqId: 4 };
  await app.result((await app.call("saveWeightsForSampler", save)).requestId);
  const sample = { baseModel: "toy", prompt: [1, 2], samplingParams: { maxTokens: 5 } };
  await app.result((await app.call("sample", sample)).requestId);
}

const hour = (text: string) => `2026-01-31T${text}:00:00Z`;

it("lists training runs with their last checkpoints, in pages", async () => {
  await work();
  await clock.advance(1000);
  const second = await app.model(sessionId, { seq: 1 });
  const page = await app.call("listTrainingRuns", null, { query: { limit: "1" } });
  expect(page.trainingRuns.map(({ trainingRunId }) => trainingRunId)).toEqual([second]);
  expect(page.cursor).toMatchObject({ limit: 1, offset: 0, totalCount: 2 });
  const run = await app.call("getTrainingRun", null, { params: { trainingRunId: model } });
  expect(run).toMatchObject({
    baseModel: "toy",
    modelOwner: "local",
    isLora: true,
    loraRank: 8,
    corrupted: false,
    lastCheckpoint: { checkpointId: "weights/a" },
    lastSamplerCheckpoint: { checkpointId: "sampler_weights/s" },
  });
});

it("filters training runs by the project of their session", async () => {
  const of = async (projectId: string) =>
    (await app.call("listTrainingRuns", null, { query: { project_id: projectId } })).cursor
      ?.totalCount;
  expect([await of("p1"), await of("p2")]).toEqual([1, 0]);
  await app.call("assignSessionProject", { projectId: "p2" }, { params: { sessionId } });
  expect([await of("p1"), await of("p2")]).toEqual([0, 1]);
});

it("lists sessions and what is in them", async () => {
  await clock.advance(10);
  const other = await app.session();
  expect((await app.call("listSessions", null)).sessions).toEqual([other, sessionId]);
  await app.call("createSamplingSession", { sessionId, samplingSessionSeqId: 0, baseModel: "toy" });
  expect(await app.call("getSession", null, { params: { sessionId } })).toMatchObject({
    trainingRunIds: [model],
    samplerIds: [`${sessionId}:sample:0`],
  });
  const samplerId = `${sessionId}:sample:0`;
  expect(await app.call("getSampler", null, { params: { samplerId } })).toMatchObject({
    samplerId,
    baseModel: "toy",
    modelPath: null,
  });
});

it.each([
  ["listTrainingRuns", { limit: "-1" }, "limit"],
  ["listTrainingRuns", { limit: "ten" }, "limit"],
  ["listTrainingRuns", { access_scope: "all" }, "access_scope"],
  ["listUserCheckpoints", { offset: "1.5" }, "offset"],
  ["getAuditLog", { day: "yesterday" }, "day"],
  ["getAuditLog", { event_type: "secrets" }, "event_type"],
  ["getBillingUsage", {}, "starting_on"],
  ["getBillingUsage", { starting_on: hour("01"), ending_before: hour("01") }, "ending_before"],
  ["getBillingUsage", { starting_on: "2026-01-31T00:30:00Z", ending_before: hour("01") }, "hour"],
  [
    "getBillingUsage",
    { starting_on: "2026-01-01T00:00:00Z", ending_before: hour("01") },
    "at most 14 days",
  ],
] as const)("%s refuses the query %j", async (name, query, text) => {
  const response = await app.fetch(name, null, { query });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(text);
});

describe("usage", () => {
  it("counts the tokens that were really used, by hour and kind", async () => {
    await work();
    await clock.advance(3_600_000);
    const { data, sessions } = await app.call("getBillingUsage", null, {
      query: { starting_on: hour("12"), ending_before: hour("14") },
    });
    const counted = data
      .filter(({ eventInfo }) => eventInfo.type !== "storage")
      .map(({ bucketStart, sessionId: session, baseModel, projectId, eventInfo }) => ({
        hour: bucketStart.getUTCHours(),
        session: session === null ? null : session === sessionId,
        baseModel,
        projectId,
        ...eventInfo,
      }));
    const mine = { hour: 12, session: true, baseModel: "toy", projectId: "p1" };
    const loose = { hour: 12, session: null, baseModel: "toy", projectId: null };
    expect(counted).toEqual(
      expect.arrayContaining([
        { ...mine, type: "training", tokenCount: 3 },
        { ...mine, type: "checkpoint", count: 2 },
        { ...loose, type: "sampling_prefill", cached: false, tokenCount: 2 },
        { ...loose, type: "sampling_sample", tokenCount: 5 },
      ]),
    );
    expect(counted).toHaveLength(4);
    expect(sessions).toEqual({ [sessionId]: { userMetadata: { team: "a", size: "3" } } });
  });

  it("bills storage for the time a checkpoint existed", async () => {
    await work();
    const { checkpoints } = await app.call("listUserCheckpoints", null);
    const bytes = checkpoints.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0);
    await clock.advance(90 * 60_000);
    for (const { checkpointId } of checkpoints) {
      await app.call("deleteCheckpoint", null, { params: { trainingRunId: model, checkpointId } });
    }
    await clock.advance(90 * 60_000);
    const { data } = await app.call("getBillingUsage", null, {
      query: { starting_on: hour("12"), ending_before: hour("15") },
    });
    const hours = data.flatMap(({ bucketStart, eventInfo }) =>
      eventInfo.type === "storage"
        ? [[bucketStart.getUTCHours(), eventInfo.gigabyteHours / (bytes / 1e9)] as const]
        : [],
    );
    expect(hours.map(([at]) => at)).toEqual([12, 13]);
    expect(hours[0]![1]).toBeCloseTo(1, 6);
    expect(hours[1]![1]).toBeCloseTo(0.5, 6);
  });
});

it("keeps an audit log of one's own events by UTC day", async () => {
  await work();
  const { entries } = await app.call("getAuditLog", null, { query: { event_type: "checkpoints" } });
  expect(entries.map(({ event, tinkerPath }) => [event, tinkerPath])).toEqual([
    ["checkpoint.created", `tinker://${model}/weights/a`],
    ["checkpoint.created", `tinker://${model}/sampler_weights/s`],
  ]);
  const all = await app.call("getAuditLog", null, { query: { day: "2026-01-31" } });
  expect(all.entries.map(({ event }) => event)).toContain("session.created");
  expect((await app.call("getAuditLog", null, { query: { day: "2026-01-30" } })).entries).toEqual(
    [],
  );
});

it("exports the timeline of a session as a trace", async () => {
  const arrived = app.engine.gates.close("forwardBackward");
  const first = await app.call("forwardBackward", passBody(model, 1, [[1, 2, 3]]));
  await arrived;
  await app.call("optimStep", { adamParams: {}, modelId: model, seqId: 2 });
  await clock.advance(250);
  app.engine.gates.open("forwardBackward");
  await app.result(first.requestId);
  await app.result(`${model}:2`);
  const { status, url } = await app.call("exportSessionTrace", null, { params: { sessionId } });
  expect(status).toBe("ready");
  const response = await app.handle(new Request(url!));
  const { traceEvents } = (await response.json()) as { traceEvents: Record<string, unknown>[] };
  const slices = traceEvents.filter(({ ph }) => ph === "X");
  expect(slices).toEqual([
    expect.objectContaining({ name: "create_model 0" }) as unknown,
    expect.objectContaining({ name: "forward_backward 1", dur: 250_000 }) as unknown,
    expect.objectContaining({ name: "optim_step 2", dur: 0 }) as unknown,
  ]);
  const queued = traceEvents.filter(({ name, cat }) => name === "queue" && cat === "optim_step");
  expect((queued[1]!["ts"] as number) - (queued[0]!["ts"] as number)).toBe(250_000);
  const begun = traceEvents.filter(({ ph }) => ph === "b").length;
  expect(traceEvents.filter(({ ph }) => ph === "e")).toHaveLength(begun);
});

it("reports its models and settings for clients", async () => {
  expect(await app.call("healthz", null)).toMatchObject({ status: "ok" });
  const config = await app.call("clientConfig", { sdkVersion: "0.25.0" });
  expect(config).toMatchObject({
    pjwtAuthEnabled: true,
    usePyqwestTransport: false,
    createModelViaLoadWeights: true,
    unknownFields: { sample_join_sampling_session: true, sample_use_retrieve_futures: false },
  });
  expect(Object.keys(config)).toHaveLength(16);
  expect(await app.call("clientDynamicConfig", { sdkVersion: "0.25.0" })).toEqual({
    refreshIntervalSec: 300,
    unknownFields: { sample_cancel_enabled: true },
  });
  expect(await app.call("getInfo", { modelId: model })).toMatchObject({
    modelId: model,
    modelName: "toy",
    loraRank: 8,
    // A client loads the tokenizer of a local model by its folder, from wherever it was started.
    modelData: { arch: "llama", tokenizerId: path.resolve("/models/toy") },
  });
});

it("unloads a model: its state goes, what comes later is refused, another can be made", async () => {
  const waiting = await app.call("forwardBackward", passBody(model, 5, [[1]]));
  const first = await app.call("unloadModel", { modelId: model });
  expect(await app.result(first.requestId)).toEqual({ model_id: model, type: "unload_model" });
  expect(await app.result(waiting.requestId)).toMatchObject({
    error: expect.stringContaining("its client unloaded it") as string,
  });
  expect(app.engine.adapters).toBe(0);
  const again = await app.call("unloadModel", { modelId: model });
  expect(again.requestId).toBe(first.requestId);
  expect((await app.fetch("forwardBackward", passBody(model, 6, [[1]]))).status).toBe(410);
  const next = await app.model(sessionId, { seq: 1 });
  const trained = await app.call("forwardBackward", passBody(next, 1, [[1]]));
  expect(await app.result(trained.requestId)).toHaveProperty("metrics");
});

it("accepts telemetry and counts it", async () => {
  const event = {
    event: "UNHANDLED_EXCEPTION",
    eventId: "e",
    eventSessionIndex: 0,
    severity: "ERROR",
    timestamp: new Date(),
    errorMessage: "boom",
    errorType: "ValueError",
  } as const;
  const batch = { platform: "Linux", sdkVersion: "0.25.0", sessionId, processUuid: "u" };
  expect(await app.call("telemetry", { ...batch, events: [event] })).toMatchObject({
    status: "accepted",
  });
  const metrics = await (await app.handle(new Request("http://localhost/metrics"))).text();
  expect(metrics).toContain('tinker_telemetry_events_total{event="UNHANDLED_EXCEPTION"} 1');
  const events = Array.from({ length: 1001 }, () => event);
  expect((await app.fetch("telemetry", { ...batch, events })).status).toBe(400);
});
