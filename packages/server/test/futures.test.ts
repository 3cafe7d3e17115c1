import { afterEach, beforeEach, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
let clock: ManualClock;
let model: string;
beforeEach(async () => {
  clock = new ManualClock();
  app = await TestApp.open({
    clock,
    limits: { inlineResultBytes: 200, sessionTimeoutMs: 1e9, fetchedGraceMs: 60_000 },
  });
  model = await app.model(await app.session());
});
afterEach(() => app.dispose());

const minutes = (count: number) => count * 60_000;

it("answers 404 for a request that was never made", async () => {
  const response = await app.fetch("retrieveFuture", { requestId: "nope" });
  expect(response.status).toBe(404);
  expect(response.headers.get("content-length")).not.toBe("0");
});

it("does not show other owners that a request exists", async () => {
  await app.dispose();
  app = await TestApp.open({
    clock,
    limits: { sessionTimeoutMs: 1e9, fetchedGraceMs: 60_000 },
    apiKeys: [
      { key: "tml-alice-key", owner: "alice" },
      { key: "tml-bob-key", owner: "bob" },
    ],
  });
  const alice = { key: "tml-alice-key" };
  model = await app.model(await app.session(alice), alice);
  const sample = { prompt: [1], samplingParams: { maxTokens: 1 }, baseModel: "toy" };
  const requests = [
    await app.call("forwardBackward", passBody(model, 1, [[1]]), alice),
    // It belongs to no session, which would not be the other's either.
    await app.call("sample", sample, alice),
  ];
  const statuses = (key: string): Promise<number[]> =>
    Promise.all(
      requests.map(
        async ({ requestId }) => (await app.fetch("retrieveFuture", { requestId }, { key })).status,
      ),
    );
  for (const { requestId } of requests) await app.result(requestId, alice);
  expect(await statuses("tml-bob-key")).toEqual([404, 404]);
  await clock.advance(minutes(2));
  expect(await statuses("tml-alice-key")).toEqual([410, 410]);
  expect(await statuses("tml-bob-key")).toEqual([404, 404]);
});

it("announces a large result first where the client allows it", async () => {
  const rows = [Array.from({ length: 60 }, (_, i) => i)];
  const { requestId } = await app.call("forwardBackward", passBody(model, 1, rows));
  await app.result(requestId);
  const poll = (allowMetadataOnly: boolean) =>
    app.fetch(
      "retrieveFuture",
      { requestId, allowMetadataOnly },
      { headers: { accept: "application/x-protobuf" } },
    );
  const announced = (await (await poll(true)).json()) as { response_payload_size: number };
  expect(announced).toMatchObject({ status: "complete_metadata" });
  const payload = await (await poll(false)).arrayBuffer();
  expect(payload.byteLength).toBe(announced.response_payload_size);
});

it("answers a poll within 20 s, and the next one gets the result", async () => {
  const arrived = app.engine.gates.close("forwardBackward");
  const { requestId } = await app.call("forwardBackward", passBody(model, 1, [[1]]));
  await arrived;
  const early = app.fetch("retrieveFuture", { requestId });
  await clock.advance(20_000);
  expect((await early).status).toBe(408);
  expect(await (await early).json()).toMatchObject({
    queue_state: "active",
    queue_state_reason: "forward_backward is running",
  });
  const patient = app.fetch("retrieveFuture", { requestId });
  app.engine.gates.open("forwardBackward");
  expect((await patient).status).toBe(200);
});

const held = { headers: { "x-tinker-hold-ms": "50" } };

it("answers a request with its result when the sender waits for it", async () => {
  const body = passBody(model, 1, [[1]]);
  const response = await app.fetch("forwardBackward", body, held);
  const requestId = response.headers.get("x-tinker-result-of");
  expect(requestId).toBe(`${model}:1`);
  expect(response.headers.get("content-type")).toBe("application/x-protobuf");
  const accept = { headers: { accept: "application/x-protobuf" } };
  const polled = await app.fetch("retrieveFuture", { requestId: requestId! }, accept);
  expect(await response.arrayBuffer()).toEqual(await polled.arrayBuffer());
  const again = await app.fetch("forwardBackward", body, held);
  expect(again.headers.get("x-tinker-result-of")).toBe(requestId);
  expect(app.engine.log).toHaveLength(1);

  const load = { modelId: model, seqId: 2, path: "x", optimizer: false };
  const failed = await app.fetch("loadWeights", load, held);
  expect(failed.headers.get("x-tinker-result-of")).toBe(`${model}:2`);
  expect(await failed.json()).toMatchObject({
    category: "user",
    error: expect.stringContaining("path") as string,
  });
});

it("says how long the engine took, as long as it remembers", async () => {
  const timing = (response: Response): string | null => response.headers.get("server-timing");
  /** What an answer says when the engine needs so many milliseconds for it. */
  const timed = async (gate: string, ms: number, ask: () => Promise<Response>) => {
    const arrived = app.engine.gates.close(gate);
    const answer = ask();
    await arrived;
    await clock.advance(ms);
    app.engine.gates.open(gate);
    return timing(await answer);
  };
  const pass = () => app.fetch("forwardBackward", passBody(model, 1, [[1]]), held);
  expect(await timed("forwardBackward", 7, pass)).toBe("engine;dur=7.00");
  const step = async () => {
    const { requestId } = await app.call("optimStep", { modelId: model, seqId: 2, adamParams: {} });
    return app.fetch("retrieveFuture", { requestId });
  };
  expect(await timed("optimStep", 5, step)).toBe("engine;dur=5.00");
  const body = { prompt: [1], samplingParams: { maxTokens: 1 }, baseModel: "toy" };
  expect(await timed("sample", 9, () => app.fetch("sample", body, held))).toBe("engine;dur=9.00");

  await app.restart();
  const later = await app.fetch("retrieveFuture", { requestId: `${model}:1` });
  expect(later.status).toBe(200);
  expect(timing(later)).toBeNull();
});

it("holds a request no longer than a second, whatever its sender wishes", async () => {
  const arrived = app.engine.gates.close("forwardBackward");
  const headers = { "x-tinker-hold-ms": "1e12" };
  const slow = app.fetch("forwardBackward", passBody(model, 1, [[1]]), { headers });
  await arrived;
  await clock.advance(1000);
  expect(await (await slow).json()).toMatchObject({ request_id: `${model}:1` });
  app.engine.gates.open("forwardBackward");
});

it("answers with the id of the request when the moment is over or the result is large", async () => {
  const arrived = app.engine.gates.close("forwardBackward");
  const slow = app.fetch("forwardBackward", passBody(model, 1, [[1]]), held);
  await arrived;
  await clock.advance(50);
  expect(await (await slow).json()).toMatchObject({ request_id: `${model}:1` });
  app.engine.gates.open("forwardBackward");
  const rows = [Array.from({ length: 60 }, (_, i) => i)];
  const large = await app.fetch("forwardBackward", passBody(model, 2, rows), held);
  expect(large.headers.get("x-tinker-result-of")).toBeNull();
  expect(await large.json()).toMatchObject({ request_id: `${model}:2` });
});

it("keeps a result for a while after it was fetched, then answers 410", async () => {
  const { requestId } = await app.call("forwardBackward", passBody(model, 1, [[1]]));
  await app.result(requestId);
  await app.result(requestId);
  await clock.advance(minutes(2));
  const response = await app.fetch("retrieveFuture", { requestId });
  expect(response.status).toBe(410);
  const again = await app.call("forwardBackward", passBody(model, 1, [[1]]));
  expect(again.requestId).toBe(requestId);
  expect(app.engine.log).toHaveLength(1);
});

it("remembers what was fetched when it is stopped right after", async () => {
  const { requestId } = await app.call("forwardBackward", passBody(model, 1, [[1]]));
  await app.result(requestId);
  await app.restart();
  await clock.advance(minutes(2));
  expect((await app.fetch("retrieveFuture", { requestId })).status).toBe(410);
});

it("keeps an unfetched result for longer", async () => {
  const { requestId } = await app.call("forwardBackward", passBody(model, 1, [[1]]));
  await clock.advance(minutes(5));
  expect(await app.result(requestId)).toHaveProperty("metrics");
});

it("drops the oldest results when there are too many bytes of them", async () => {
  await app.dispose();
  app = await TestApp.open({ clock, limits: { maxResultBytes: 2000, sessionTimeoutMs: 1e9 } });
  model = await app.model(await app.session());
  const ids: string[] = [];
  for (let seq = 1; seq <= 6; seq++) {
    const rows = [Array.from({ length: 60 }, (_, i) => i)];
    ids.push((await app.call("forwardBackward", passBody(model, seq, rows))).requestId);
    await clock.advance(1000);
  }
  await clock.advance(minutes(1));
  const statuses = await Promise.all(
    ids.map(async (requestId) => (await app.fetch("retrieveFuture", { requestId })).status),
  );
  expect(statuses.at(0)).toBe(410);
  expect(statuses.at(-1)).toBe(200);
});

it("answers 410 to the owner of a request without a record", async () => {
  await app.dispose();
  app = await TestApp.open({
    clock,
    limits: { maxRequestRecords: 1, sessionTimeoutMs: 1e9 },
    apiKeys: [
      { key: "tml-alice-key", owner: "alice" },
      { key: "tml-bob-key", owner: "bob" },
    ],
  });
  const alice = { key: "tml-alice-key" };
  model = await app.model(await app.session(alice), alice);
  for (const seqId of [1, 2, 3]) {
    const body = { adamParams: {}, modelId: model, seqId };
    await app.result((await app.call("optimStep", body, alice)).requestId, alice);
  }
  await app.call("saveWeights", { modelId: model, path: "a", seqId: 4 }, alice);
  await clock.advance(minutes(12));
  const status = async (seq: number, key: string): Promise<number> =>
    (await app.fetch("retrieveFuture", { requestId: `${model}:${seq}` }, { key })).status;
  expect(await status(0, "tml-alice-key")).toBe(410);
  expect(await status(9, "tml-alice-key")).toBe(404);
  expect(await status(0, "tml-bob-key")).toBe(404);
});

it("fails a request when the engine breaks twice under it, and the model goes on", async () => {
  const good = await app.call("forwardBackward", passBody(model, 1, [[3]]));
  await app.result(good.requestId);
  const breaking = await app.call("forwardBackward", passBody(model, 2, [[99]]));
  expect(await app.result(breaking.requestId)).toMatchObject({
    category: "server",
    error: expect.stringMatching(
      /^the server failed; its log has the details under [0-9a-f]{8}$/,
    ) as string,
  });
  const next = await app.call("forwardBackward", passBody(model, 3, [[4]]));
  expect(await app.result(next.requestId)).toHaveProperty("metrics");
  const repeats = app.engine.log.filter((line) => line === "forwardBackward 3");
  expect(repeats.length).toBeGreaterThan(1);
});
