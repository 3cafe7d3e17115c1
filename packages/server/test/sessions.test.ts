import { afterEach, beforeEach, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock();
  app = await TestApp.open({ clock, limits: { sessionTimeoutMs: 60_000 } });
});
afterEach(() => app.dispose());

it("closes a session without a heartbeat: its models end, waiting requests fail, later calls get the reason", async () => {
  const sessionId = await app.session();
  const model = await app.model(sessionId);
  const waiting = await app.call("forwardBackward", passBody(model, 2, [[1]]));
  const sampler = await app.call("createSamplingSession", {
    sessionId,
    samplingSessionSeqId: 0,
    baseModel: "toy",
  });
  await clock.advance(62_000);

  const reason = `session ${sessionId} was closed at`;
  expect(await app.result(waiting.requestId)).toMatchObject({
    category: "user",
    error: expect.stringContaining("no sign of life from its client for 60 s") as string,
  });
  expect(app.engine.adapters).toBe(0);
  for (const response of [
    await app.fetch("sessionHeartbeat", { sessionId }),
    await app.fetch("createModel", { sessionId, modelSeqId: 1, baseModel: "toy" }),
    await app.fetch("sample", {
      samplingSessionId: sampler.samplingSessionId,
      seqId: 0,
      prompt: [1],
      samplingParams: { maxTokens: 1 },
    }),
  ]) {
    expect(response.status).toBe(410);
    expect(await response.text()).toContain(reason);
  }
  const training = await app.fetch("forwardBackward", passBody(model, 3, [[1]]));
  expect(training.status).toBe(410);
  expect(await training.text()).toContain("has ended");
});

it("keeps a session open for as long as its client gives a sign of life", async () => {
  const sessionId = await app.session();
  for (let beat = 0; beat < 5; beat++) {
    await clock.advance(50_000);
    await app.call("sessionHeartbeat", { sessionId });
  }
  expect((await app.fetch("sessionHeartbeat", { sessionId })).status).toBe(200);
});

it("takes a poll for a sign of life", async () => {
  const sessionId = await app.session();
  const model = await app.model(sessionId);
  const { requestId } = await app.call("forwardBackward", passBody(model, 2, [[1]]));
  for (let poll = 0; poll < 5; poll++) {
    const answer = app.fetch("retrieveFuture", { requestId });
    await clock.advance(40_000);
    expect((await answer).status).toBe(408);
  }
});

it("gives sessions a fresh start after a restart", async () => {
  const sessionId = await app.session();
  await clock.advance(50_000);
  await app.restart();
  await clock.advance(50_000);
  expect((await app.fetch("sessionHeartbeat", { sessionId })).status).toBe(200);
});

it("opens one session for all attempts of one call", async () => {
  const options = { headers: { "x-idempotency-key": "k" } };
  expect(await app.session(options)).toBe(await app.session(options));
  expect(await app.session()).not.toBe(await app.session());
});

it("does not know sessions of others", async () => {
  await app.dispose();
  app = await TestApp.open({
    apiKeys: [
      { key: "tml-alice-key", owner: "alice" },
      { key: "tml-bob-key", owner: "bob" },
    ],
  });
  const sessionId = await app.session({ key: "tml-alice-key" });
  const response = await app.fetch("sessionHeartbeat", { sessionId }, { key: "tml-bob-key" });
  expect(response.status).toBe(404);
});

it.each([
  ["the clock is set forward by an hour", () => clock.set(3_600_000)],
  ["the clock is set back by an hour", () => clock.set(-3_600_000)],
  ["the process or the machine stands still", () => clock.sleep(306_000)],
])("ends no session of a living client when %s", async (_, happens) => {
  const sessionId = await app.session();
  const dead = await app.session();
  await clock.advance(30_000);
  happens();
  // What is due happens before anybody is heard again.
  await clock.advance(1000);
  await app.call("sessionHeartbeat", { sessionId });
  await clock.advance(59_000);
  expect((await app.fetch("sessionHeartbeat", { sessionId })).status).toBe(200);
  expect((await app.fetch("sessionHeartbeat", { sessionId: dead })).status).toBe(410);
});

it.each(["forwardBackward", "sample"] as const)(
  "closes a finished session when a %s that it has accepted is done, however long that takes",
  async (kind) => {
    const sessionId = await app.session();
    const model = await app.model(sessionId);
    const { samplingSessionId } = await app.call("createSamplingSession", {
      sessionId,
      samplingSessionSeqId: 0,
      baseModel: "toy",
    });
    void app.engine.gates.close(kind);
    const prompt = { prompt: [1], samplingParams: { maxTokens: 1 } };
    const { requestId } = await (kind === "sample"
      ? app.call("sample", { samplingSessionId, seqId: 0, ...prompt })
      : app.call("forwardBackward", passBody(model, 1, [[1]])));
    const finish = { reason: { type: "success" }, detail: null };
    await app.call("finishSession", finish, { params: { sessionId } });
    await clock.advance(600_000);
    app.engine.gates.open(kind);
    expect(await app.result(requestId)).not.toHaveProperty("error");
    expect(app.engine.adapters).toBe(1);
    await clock.advance(2_000);
    expect(app.engine.adapters).toBe(0);
  },
);

it("keeps a joined sampler of a finished session for as long as it is used, and frees its models", async () => {
  const sessionId = await app.session();
  await app.model(sessionId);
  const [joined, alone] = await Promise.all(
    [0, 1].map(async (samplingSessionSeqId) => {
      const request = { sessionId, samplingSessionSeqId, baseModel: "toy" };
      return (await app.call("createSamplingSession", request)).samplingSessionId;
    }),
  );
  await app.call("joinSamplingSession", { samplingSessionId: joined! });
  const finish = { reason: { type: "success" }, detail: null };
  await app.call("finishSession", finish, { params: { sessionId } });
  const sample = (samplingSessionId: string, seqId: number) =>
    app.fetch("sample", {
      samplingSessionId,
      seqId,
      prompt: [1],
      samplingParams: { maxTokens: 1 },
    });
  const hour = 3_600_000;
  for (let round = 0; round < 3; round++) {
    await clock.advance(5 * hour);
    const accepted = await sample(joined!, 1e9 + round);
    expect(accepted.status).toBe(200);
    const { request_id: requestId } = (await accepted.json()) as { request_id: string };
    expect(await app.result(requestId)).toHaveProperty("sequences");
    expect((await sample(alone!, round)).status).toBe(410);
  }
  expect(app.engine.adapters).toBe(0);
  await clock.advance(7 * hour);
  expect((await sample(joined!, 1e9 + 9)).status).toBe(410);
});
