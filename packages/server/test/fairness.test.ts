import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp } from "./support/test-app.js";

const ann = { key: "tml-key-ann" };
const bob = { key: "tml-key-bob" };
const apiKeys = [
  { key: ann.key, owner: "ann" },
  { key: bob.key, owner: "bob" },
];

let app: TestApp;
beforeEach(async () => {
  app = await TestApp.open({ apiKeys, limits: { longPollMs: 1, maxLiveModels: 32 } });
});
afterEach(() => app.dispose());

/** Models with a session of their own. */
async function models(count: number, caller: typeof ann): Promise<string[]> {
  const sessionId = await app.session(caller);
  const numbers = Array.from({ length: count }, (_, n) => n);
  return Promise.all(numbers.map((n) => app.model(sessionId, { ...caller, seq: n, seed: n })));
}

const passes = (): string[] =>
  app.engine.log
    .filter((line) => line.startsWith("forwardBackward"))
    .map((line) => line.replace("forwardBackward ", ""));

describe("training", () => {
  it("of one owner waits for one turn of another, however much that one has in line", async () => {
    const many = await models(20, ann);
    const [one = ""] = await models(1, bob);
    const arrived = app.engine.gates.close("forwardBackward");
    const waiting: string[] = [];
    for (const modelId of many) {
      for (const seq of [1, 2, 3]) {
        const { requestId } = await app.call("forwardBackward", passBody(modelId, seq, [[1]]), ann);
        waiting.push(requestId);
      }
    }
    await arrived;
    const { requestId } = await app.call("forwardBackward", passBody(one, 1, [[2]]), bob);
    app.engine.gates.open("forwardBackward");
    await app.result(requestId, bob);
    for (const id of waiting) await app.result(id, ann);
    // The one at the engine when it came, at most one more that had its turn already, then its own.
    expect(passes().indexOf("2")).toBeLessThanOrEqual(2);
    expect(passes()).toHaveLength(61);
  });

  it("reports to pollers that it waits for its turn, and how many wait", async () => {
    const [first = "", second = ""] = await models(2, ann);
    const [other = ""] = await models(1, bob);
    const arrived = app.engine.gates.close("forwardBackward");
    const submit = (modelId: string, caller: typeof ann) =>
      app.call("forwardBackward", passBody(modelId, 1, [[1]]), caller);
    await submit(first, ann);
    await arrived;
    const { requestId } = await submit(second, ann);
    await submit(other, bob);
    const queueState = async (): Promise<unknown> => {
      const poll = await app.fetch("retrieveFuture", { requestId }, ann);
      return poll.json();
    };
    await expect.poll(queueState).toMatchObject({
      queue_state: "paused_capacity",
      queue_state_reason: "waiting for its turn: 1 of your models wait, and 2 owners take turns",
    });
    app.engine.gates.open("forwardBackward");
    expect(await app.result(requestId, ann)).toHaveProperty("metrics");
  });

  it("goes on after a restart for those that had no turn yet, and is done once", async () => {
    const many = await models(5, ann);
    const arrived = app.engine.gates.close("forwardBackward");
    const requests = await Promise.all(
      many.map((modelId) => app.call("forwardBackward", passBody(modelId, 1, [[1]]), ann)),
    );
    await arrived;
    const stopped = app.stop();
    app.engine.gates.open("forwardBackward");
    await stopped;
    expect(passes()).toHaveLength(1);
    await app.start();
    for (const { requestId } of requests) {
      expect(await app.result(requestId, ann)).toHaveProperty("metrics");
    }
    // The one that was done has been repeated for its model at most.
    expect(passes().length).toBeGreaterThanOrEqual(5);
    expect(passes().length).toBeLessThanOrEqual(6);
  });

  it("pays for bringing a model back, so that others who come cheaper go first", async () => {
    const [costly = "", other = ""] = await models(2, ann);
    const [running = "", ...cheap] = await models(8, bob);
    const submit = (modelId: string, seq: number, row: number[], caller: typeof ann) =>
      app.call("forwardBackward", passBody(modelId, seq, [row]), caller);
    const long = Array.from({ length: 2000 }, () => 9);
    const first = await submit(costly, 1, long, ann);
    await app.result(first.requestId, ann);
    await app.restart();
    const arrived = app.engine.gates.close("forwardBackward");
    await submit(running, 1, [50], bob);
    await arrived;
    await submit(costly, 2, [41], ann);
    const last = await submit(other, 1, [42], ann);
    for (const modelId of cheap) await submit(modelId, 1, [50], bob);
    app.engine.gates.open("forwardBackward");
    await app.result(last.requestId, ann);
    expect(passes().at(-1)).toBe("42");
    expect(passes().filter((tokens) => tokens === "50")).toHaveLength(8);
  });

  it("keeps to the limit of models in memory when many are created at once", async () => {
    await models(60, ann);
    expect(app.engine.mostAdapters).toBe(32);
  });

  it("parks models of the owner with the most", async () => {
    const [one = ""] = await models(1, bob);
    await models(40, ann);
    const { created } = app.engine;
    const { requestId } = await app.call("forwardBackward", passBody(one, 1, [[1]]), bob);
    await app.result(requestId, bob);
    expect(app.engine.created).toBe(created);
  });
});

describe("sampling", () => {
  it("lets owners take turns, however many sessions each of them has", async () => {
    await app.dispose();
    app = await TestApp.open({ apiKeys, limits: { maxRunningSequences: 1 } });
    const sample = (caller: typeof ann, seed: number) => {
      const body = { baseModel: "toy", prompt: [1], samplingParams: { maxTokens: 1, seed } };
      return app.call("sample", { ...body }, caller);
    };
    const sampler = async (n: number): Promise<string> => {
      const body = { sessionId: await app.session(ann), samplingSessionSeqId: 0, baseModel: "toy" };
      const { samplingSessionId } = await app.call("createSamplingSession", body, ann);
      const { requestId } = await app.call(
        "sample",
        { samplingSessionId, seqId: n, prompt: [1], samplingParams: { maxTokens: 1, seed: n } },
        ann,
      );
      return requestId;
    };
    const arrived = app.engine.gates.close("sample");
    const first = await sample(ann, 100);
    await arrived;
    const others: string[] = [];
    for (let n = 0; n < 10; n++) others.push(await sampler(n));
    const { requestId } = await sample(bob, 200);
    app.engine.gates.open("sample");
    await app.result(requestId, bob);
    for (const id of [first.requestId, ...others]) await app.result(id, ann);
    const order = app.engine.log.filter((line) => line.startsWith("sample"));
    expect(order.indexOf("sample 200")).toBeLessThanOrEqual(2);
    expect(order).toHaveLength(12);
  });
});

describe("samples of different sizes", () => {
  it("are shared by tokens, so that an owner with small ones waits less", async () => {
    await app.dispose();
    app = await TestApp.open({ apiKeys, limits: { maxRunningSequences: 1 } });
    const sample = async (caller: typeof ann, seed: number, numSamples: number) => {
      const samplingParams = { maxTokens: 20, seed };
      const body = { baseModel: "toy", prompt: [1], samplingParams, numSamples };
      return { ...(await app.call("sample", body, caller)), caller };
    };
    const arrived = app.engine.gates.close("sample");
    const requests = [await sample(ann, 1, 50)];
    await arrived;
    for (const seed of [2, 3]) requests.push(await sample(ann, seed, 1));
    for (const seed of [4, 5, 6]) requests.push(await sample(bob, seed, 1));
    app.engine.gates.open("sample");
    for (const { requestId, caller } of requests) await app.result(requestId, caller);
    const order = app.engine.log.filter((line) => line.startsWith("sample"));
    expect(order).toEqual([1, 4, 5, 6, 2, 3].map((seed) => `sample ${seed}`));
  });
});

describe("what is kept", () => {
  const sample = async (caller: typeof ann, seed: number): Promise<string> => {
    const samplingParams = { maxTokens: 60, seed };
    const body = { baseModel: "toy", prompt: [1], samplingParams };
    const { requestId } = await app.call("sample", body, caller);
    await app.result(requestId, caller);
    return requestId;
  };
  const statusOf = async (requestId: string, caller: typeof ann): Promise<number> =>
    (await app.fetch("retrieveFuture", { requestId }, caller)).status;

  it("of results costs no owner one when another makes too many", async () => {
    await app.dispose();
    const clock = new ManualClock();
    const limits = { maxResultBytes: 3000, sessionTimeoutMs: 1e9 };
    app = await TestApp.open({ apiKeys, clock, limits });
    const first = await sample(bob, 0);
    const others: string[] = [];
    for (let seed = 1; seed <= 20; seed++) others.push(await sample(ann, seed));
    await clock.advance(60_000);
    expect(await statusOf(first, bob)).toBe(200);
    expect(await statusOf(others[0]!, ann)).toBe(410);
    expect(await statusOf(others.at(-1)!, ann)).toBe(200);
  });

  it("of sampler weights costs no owner one when another makes too many", async () => {
    const [other = ""] = await models(1, bob);
    const save = await app.call(
      "saveWeightsForSampler",
      { modelId: other, seqId: 1, path: "a" },
      bob,
    );
    await app.result(save.requestId, bob);
    const { checkpoints } = await app.call("listUserCheckpoints", null, bob);
    const { sizeBytes } = checkpoints[0]!;
    await app.dispose();
    const clock = new ManualClock();
    const limits = { sessionTimeoutMs: 1e9, maxEphemeralBytes: 4 * sizeBytes! };
    app = await TestApp.open({ apiKeys, clock, limits });
    const saveMany = async (caller: typeof ann, count: number): Promise<string[]> => {
      const modelId = await app.model(await app.session(caller), caller);
      const made: string[] = [];
      for (let seq = 1; seq <= count; seq++) {
        await clock.advance(1);
        const body = { modelId, samplingSessionSeqId: seq, seqId: seq };
        const { requestId } = await app.call("saveWeightsForSampler", body, caller);
        made.push((await app.result(requestId, caller))["sampling_session_id"] as string);
      }
      return made;
    };
    const [one = ""] = await saveMany(bob, 1);
    const many = await saveMany(ann, 10);
    await clock.advance(2000);
    const ask = async (samplingSessionId: string, caller: typeof ann): Promise<number> => {
      const body = { samplingSessionId, seqId: 9, prompt: [1], samplingParams: { maxTokens: 1 } };
      return (await app.fetch("sample", body, caller)).status;
    };
    expect(await ask(one, bob)).toBe(200);
    expect(await ask(many[0]!, ann)).toBe(404);
    expect(await ask(many.at(-1)!, ann)).toBe(200);
  });
});

describe("polls", () => {
  it("of one owner leave places for those of others", async () => {
    await app.dispose();
    app = await TestApp.open({ apiKeys, limits: { maxWaitingPolls: 4 } });
    const [first = ""] = await models(1, ann);
    const [second = ""] = await models(1, bob);
    // Both wait for a number that has not come.
    const mine = await app.call("forwardBackward", passBody(first, 2, [[1]]), ann);
    const theirs = await app.call("forwardBackward", passBody(second, 2, [[1]]), bob);
    const over = new AbortController();
    const poll = ({ requestId }: { requestId: string }, caller: typeof ann) =>
      app.fetch("retrieveFuture", { requestId }, { ...caller, signal: over.signal });
    const waiting = [poll(mine, ann), poll(mine, ann)];
    expect((await poll(mine, ann)).status).toBe(429);
    const other = poll(theirs, bob);
    expect(await Promise.race([other, nextTurns()])).toBe("waits");
    over.abort();
    for (const ended of await Promise.all([...waiting, other])) expect(ended.status).toBe(408);
  });
});

/** A few turns of the event loop, in which a refusal would have come. */
async function nextTurns(): Promise<"waits"> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  return "waits";
}
