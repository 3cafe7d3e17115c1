import { readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { flipBit } from "./support/flip-bit.js";
import { encodeProto } from "tinker-ts/wire";
import { SqlDatabase } from "../src/store/sql.js";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp } from "./support/test-app.js";

let app: TestApp;
let model: string;
let seq: number;
beforeEach(async () => {
  app = await TestApp.open({ limits: { maxJournalBytes: 40_000 } });
  model = await app.model(await app.session());
  seq = 1;
});
afterEach(() => app.dispose());

/** A datum whose request is too large to live in a row. */
const large = Array.from({ length: 1500 }, (_, i) => i % 90);

async function pass(rows = [large]): Promise<void> {
  await app.result((await app.call("forwardBackward", passBody(model, seq++, rows))).requestId);
}

async function step(): Promise<void> {
  const body = { adamParams: { learningRate: 0.01 }, modelId: model, seqId: seq++ };
  await app.result((await app.call("optimStep", body)).requestId);
}

async function loss(): Promise<unknown> {
  const { forwardBackwardInput: forwardInput } = passBody(model, seq, [[3, 4]]);
  const { requestId } = await app.call("forward", { forwardInput, modelId: model, seqId: seq++ });
  return (await app.result(requestId))["metrics"];
}

const list = (folder: string): string[] => {
  try {
    return readdirSync(path.join(app.dataDir, folder));
  } catch {
    return [];
  }
};

/** What the engine was asked to do since the last look. */
function takeLog(): string[] {
  return app.engine.log.splice(0).map((line) => line.split(" ")[0]!);
}

describe("the journal", () => {
  it("repeats passes and steps after a restart and answers what was answered before", async () => {
    await pass([[1, 2]]);
    await step();
    await pass([[3]]);
    const before = await loss();
    takeLog();
    await app.restart();
    expect(await loss()).toEqual(before);
    expect(takeLog()).toEqual(["forwardBackward", "optimStep", "forwardBackward", "forward"]);
    await step();
    const stepped = await loss();
    await app.restart();
    expect(await loss()).toEqual(stepped);
    expect(await app.result(`${model}:1`)).toHaveProperty("loss_fn_outputs");
  });

  it("is bounded: a snapshot takes its place when it has grown", async () => {
    for (let round = 0; round < 3; round++) {
      await pass();
      await step();
    }
    await expect.poll(() => list("snapshots")).toHaveLength(1);
    const before = await loss();
    await expect.poll(() => list("blobs").length).toBeLessThan(5);
    takeLog();
    await app.restart();
    expect(await loss()).toEqual(before);
    expect(takeLog().length).toBeLessThan(6);
  });

  it("is never cut while gradients are waiting for their step", async () => {
    await pass();
    await pass();
    await pass();
    expect(list("snapshots")).toEqual([]);
    const before = await loss();
    await app.restart();
    expect(await loss()).toEqual(before);
    await step();
    await expect.poll(() => list("snapshots")).toHaveLength(1);
  });

  it("is bounded between steps too: passes without end are refused", async () => {
    await app.dispose();
    app = await TestApp.open({ limits: { maxJournalBytes: 5000 } });
    model = await app.model(await app.session());
    seq = 1;
    await pass();
    const { requestId } = await app.call("forwardBackward", passBody(model, seq++, [[1]]));
    expect(await app.result(requestId)).toMatchObject({
      category: "user",
      error: expect.stringContaining("call optim_step") as string,
    });
    await step();
    await pass([[1]]);
  });

  it("is replaced by a snapshot when its model has been idle", async () => {
    await app.dispose();
    const clock = new ManualClock();
    app = await TestApp.open({ clock, limits: { sessionTimeoutMs: 1e9 } });
    model = await app.model(await app.session());
    seq = 1;
    const arrived = app.engine.gates.close("forwardBackward");
    const slow = app.call("forwardBackward", passBody(model, seq++, [[1]]));
    await arrived;
    await clock.advance(1000);
    app.engine.gates.open("forwardBackward");
    await app.result((await slow).requestId);
    await step();
    await clock.advance(10_000);
    await expect.poll(() => list("snapshots")).toHaveLength(1);
    const before = await loss();
    takeLog();
    await app.restart();
    expect(await loss()).toEqual(before);
    expect(takeLog()).toEqual(["forward"]);
  });

  it("keeps its payloads when the results they led to are dropped", async () => {
    await app.dispose();
    app = await TestApp.open({ limits: { maxResultBytes: 1 } });
    model = await app.model(await app.session());
    seq = 1;
    await pass([[1, 2]]);
    await step();
    const before = await loss();
    await app.restart();
    expect(await loss()).toEqual(before);
  });
});

describe("a snapshot", () => {
  const damages = [
    ["torn", (file: string) => truncateSync(file, 40)],
    ["missing", (file: string) => rmSync(path.dirname(file), { recursive: true })],
    ["altered", (file: string) => flipBit(file)],
  ] as const;

  beforeEach(async () => {
    const seen = new Set<string>();
    while (seen.size < 3) {
      await pass();
      await step();
      for (const folder of list("snapshots")) if (!folder.startsWith(".")) seen.add(folder);
    }
    await app.stop();
    expect(list("snapshots")).toHaveLength(2);
  });

  /** Snapshots by age, the newest first. */
  const byAge = (): string[] => list("snapshots").toSorted((a, b) => appliedOf(b) - appliedOf(a));
  const appliedOf = (folder: string): number => {
    const file = path.join(app.dataDir, "snapshots", folder, "manifest.json");
    return (JSON.parse(readFileSync(file, "utf8")) as { applied: number }).applied;
  };
  const spoil = (folder: string, damage: (file: string) => void): void =>
    damage(path.join(app.dataDir, "snapshots", folder, "adapter.json"));

  it.each(damages)("that is %s is not needed: the one before it leads there", async (_, damage) => {
    await app.start();
    const before = await loss();
    await app.stop();
    spoil(byAge()[0]!, damage);
    await app.start();
    expect(await loss()).toEqual(before);
    expect(app.logLines.join("\n")).toContain("a snapshot cannot be used");
  });

  it.each(damages)("that is %s like the one before corrupts its run alone", async (_, damage) => {
    const folders = byAge();
    for (const folder of folders) spoil(folder, damage);
    await app.start();
    const { requestId } = await app.call("forwardBackward", passBody(model, seq, [[1]]));
    expect(await app.result(requestId)).toMatchObject({
      category: "server",
      error: expect.stringMatching(
        `snapshots/${folders[0]}/adapter.json .*continue from a checkpoint`,
      ) as string,
    });
    const run = await app.call("getTrainingRun", null, { params: { trainingRunId: model } });
    expect(run.corrupted).toBe(true);
    const other = await app.session();
    expect(await app.model(other)).toContain(other);
  });
});

describe("memory", () => {
  it("holds a bounded number of models; parked ones come back as they were", async () => {
    await app.dispose();
    app = await TestApp.open({ limits: { maxLiveModels: 2 } });
    const sessionId = await app.session();
    const models: string[] = [];
    for (let n = 0; n < 5; n++) {
      model = await app.model(sessionId, { seq: n, seed: n });
      seq = 1;
      await pass([[n + 1]]);
      models.push(model);
    }
    expect(app.engine.mostAdapters).toBe(2);
    for (const [n, id] of models.entries()) {
      model = id;
      seq = 2;
      await step();
      const parked = await loss();
      const fresh = await TestApp.open();
      try {
        const same = await fresh.model(await fresh.session(), { seed: n });
        await fresh.call("forwardBackward", passBody(same, 1, [[n + 1]]));
        const body = { adamParams: { learningRate: 0.01 }, modelId: same, seqId: 2 };
        await fresh.call("optimStep", body);
        const { forwardBackwardInput: forwardInput } = passBody(same, 3, [[3, 4]]);
        const { requestId } = await fresh.call("forward", {
          forwardInput,
          modelId: same,
          seqId: 3,
        });
        expect((await fresh.result(requestId))["metrics"]).toEqual(parked);
      } finally {
        await fresh.dispose();
      }
    }
  });

  it("holds a bounded number of sampler weights", async () => {
    await app.dispose();
    app = await TestApp.open({ limits: { maxLoadedSamplers: 2 } });
    model = await app.model(await app.session());
    for (let n = 1; n <= 5; n++) {
      const body = { modelId: model, path: `s${n}`, seqId: n };
      await app.result((await app.call("saveWeightsForSampler", body)).requestId);
    }
    await expect.poll(() => app.engine.frozen).toBe(2);
    const sample = { prompt: [1], samplingParams: { maxTokens: 1 } };
    const modelPath = `tinker://${model}/sampler_weights/s1`;
    const { requestId } = await app.call("sample", { ...sample, modelPath });
    expect(await app.result(requestId)).toHaveProperty("sequences");
    await expect.poll(() => app.engine.frozen).toBe(2);
  });
});

it.each(["saveWeights", "saveWeightsForSampler"] as const)(
  "leaves no file behind of a %s that could not be committed",
  async (endpoint) => {
    const database = new SqlDatabase(path.join(app.dataDir, "server.db"));
    database.exec(`CREATE TRIGGER fault BEFORE INSERT ON checkpoints
      BEGIN SELECT RAISE(ABORT, 'a fault of the test'); END`);
    const body = { modelId: model, seqId: seq++, path: "none" };
    const { requestId } = await app.call(endpoint, body);
    expect(await app.result(requestId)).toMatchObject({ category: "server" });
    expect(list("checkpoints")).toEqual([]);
    database.exec("DROP TRIGGER fault");
    database.close();
    await app.result((await app.call(endpoint, { ...body, seqId: seq++ })).requestId);
    expect(list("checkpoints")).toHaveLength(1);
  },
);

describe.each([0, 1000])("what cannot be accepted, held for %d ms,", (holdMs) => {
  /** Sends it as the SDK does. */
  const send = (row: number[], seqId: number): Promise<Response> =>
    app.handle(
      new Request("http://localhost/api/v1/forward_backward", {
        method: "POST",
        headers: {
          "content-type": "application/x-protobuf",
          "x-tinker-hold-ms": String(holdMs),
        },
        body: encodeProto("ForwardBackwardRequest", passBody(model, seqId, [row])),
      }),
    );
  const exec = (sql: string): void => {
    const database = new SqlDatabase(path.join(app.dataDir, "server.db"));
    database.exec(sql);
    database.close();
  };
  const breakAcceptance = (): void =>
    exec(`CREATE TRIGGER fault BEFORE INSERT ON requests
      BEGIN SELECT RAISE(ABORT, 'a fault of the test'); END`);

  it("never reaches the engine, and its number is free", async () => {
    await pass([[1, 2]]);
    takeLog();
    breakAcceptance();
    expect((await send([3], seq)).status).toBe(500);
    expect(takeLog()).toEqual([]);
    exec("DROP TRIGGER fault");
    expect((await send([4], seq)).status).toBe(200);
    await app.result(`${model}:${seq++}`);
    await step();
    const before = await loss();
    await app.restart();
    expect(await loss()).toEqual(before);
  });

  it("leaves the gradient as it was where it is a step that cannot be written", async () => {
    await pass([[1, 2]]);
    await step();
    await pass([[3, 4]]);
    takeLog();
    breakAcceptance();
    const body = { adamParams: { learningRate: 0.5 }, modelId: model, seqId: seq };
    const headers = { "x-tinker-hold-ms": String(holdMs) };
    expect((await app.fetch("optimStep", body, { headers })).status).toBe(500);
    exec("DROP TRIGGER fault");
    await step();
    expect(takeLog()).toEqual(["optimStep"]);
    const before = await loss();
    await app.restart();
    expect(await loss()).toEqual(before);
  });
});
