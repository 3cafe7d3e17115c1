import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { officialSample, rawRequest, type SampleFields } from "./support/official-client.js";
import { realModels } from "./support/real-models.js";
import { ServerProcess } from "./support/server-process.js";
import { TestApp, type CallOptions, type TestAppOptions } from "./support/test-app.js";

const keys = [
  { key: "tml-owner-a", owner: "a" },
  { key: "tml-owner-b", owner: "b" },
];
const billion = 1_000_000_000;

let app: TestApp;
let sampler: string;
beforeEach(() => open());
afterEach(() => app.dispose());

async function open(options: TestAppOptions = {}): Promise<void> {
  app = await TestApp.open({ apiKeys: keys, ...options });
  sampler = await createSampler();
}

async function createSampler(options: CallOptions = { key: "tml-owner-a" }): Promise<string> {
  const sessionId = await app.session(options);
  const body = { sessionId, samplingSessionSeqId: 0, baseModel: "toy" };
  return (await app.call("createSamplingSession", body, options)).samplingSessionId;
}

type Json = ReturnType<typeof JSON.parse>;

async function post(route: string, body: object, key = "tml-owner-a"): Promise<[number, Json]> {
  const request = rawRequest("http://localhost", route, body, { "x-api-key": key });
  const response = await app.handle(request);
  const text = await response.text();
  return [response.status, text === "" ? null : JSON.parse(text)];
}

async function submit(seqId: number, fields: SampleFields = {}): Promise<string> {
  const body = officialSample({ sampling_session_id: sampler, seq_id: seqId, ...fields });
  const [status, { request_id: id }] = await post("asample", body);
  expect(status).toBe(200);
  return id as string;
}

const retrieve = (requestId: string): Promise<[number, Json]> =>
  post("retrieve_future", { request_id: requestId, allow_metadata_only: true });

describe("cancel_future", () => {
  const cancel = (requestId: string, key?: string): Promise<[number, Json]> =>
    post("cancel_future", { request_id: requestId }, key);
  const cancelled = [200, { error: "the sample was cancelled by its client", category: "user" }];

  it("frees the engine at once for the next sample", async () => {
    await app.dispose();
    await open({ limits: { maxRunningSequences: 1 } });
    const arrived = app.engine.gates.close("sample");
    const first = await submit(0, { sampling_params: { seed: 1 } });
    await arrived;
    const second = await submit(1, { sampling_params: { seed: 2 } });
    expect(app.engine.log).toEqual(["sample 1"]);
    const next = app.engine.gates.close("sample");
    expect(await cancel(first)).toEqual([204, null]);
    await next;
    expect(app.engine.log).toEqual(["sample 1", "sample 2"]);
    expect(await retrieve(first)).toEqual(cancelled);
    app.engine.gates.open("sample");
    expect((await retrieve(second))[1]).toHaveProperty("sequences");
  });

  it("takes a sample out of the queue that waits, and no other", async () => {
    await app.dispose();
    await open({ limits: { maxRunningSequences: 1 } });
    const arrived = app.engine.gates.close("sample");
    const ids = [await submit(0, { sampling_params: { seed: 1 } })];
    await arrived;
    for (const seed of [2, 3, 4]) ids.push(await submit(seed, { sampling_params: { seed } }));
    expect((await cancel(ids[2]!))[0]).toBe(204);
    expect(await retrieve(ids[2]!)).toEqual(cancelled);
    app.engine.gates.open("sample");
    for (const id of [ids[0]!, ids[1]!, ids[3]!]) {
      expect((await retrieve(id))[1]).toHaveProperty("sequences");
    }
    expect(app.engine.log).toEqual(["sample 1", "sample 2", "sample 4"]);
  });

  it("does not wait for a model that is being loaded", async () => {
    const arrived = app.engine.gates.close("load");
    const id = await submit(0);
    await arrived;
    expect((await cancel(id))[0]).toBe(204);
    expect(await retrieve(id)).toEqual(cancelled);
    app.engine.gates.open("load");
  });

  it("may be repeated, and changes nothing of a sample that has ended", async () => {
    const arrived = app.engine.gates.close("sample");
    const given = await submit(0);
    await arrived;
    expect((await cancel(given))[0]).toBe(204);
    expect((await cancel(given))[0]).toBe(204);
    expect(await retrieve(given)).toEqual(cancelled);
    expect(await submit(0)).toBe(given);
    app.engine.gates.open("sample");
    const done = await submit(1);
    const result = await retrieve(done);
    expect(result[1]).toHaveProperty("sequences");
    expect((await cancel(done))[0]).toBe(204);
    expect(await retrieve(done)).toEqual(result);
  });

  it("is only for samples of one's own", async () => {
    const arrived = app.engine.gates.close("sample");
    const id = await submit(0);
    await arrived;
    expect((await cancel(id, "tml-owner-b"))[0]).toBe(404);
    expect((await cancel("nobody:sample:0:1"))[0]).toBe(404);
    const options = { key: "tml-owner-a" };
    const model = await app.model(await app.session(options), options);
    const [status, text] = await cancel(`${model}:0`);
    expect([status, JSON.stringify(text)]).toEqual([
      400,
      expect.stringContaining("only samples can be cancelled"),
    ]);
    app.engine.gates.open("sample");
    expect((await retrieve(id))[1]).toHaveProperty("sequences");
  });
});

describe("join_sampling_session", () => {
  const join = (key?: string): Promise<[number, Json]> => {
    const body = { sampling_session_id: sampler, type: "join_sampling_session" };
    return post("join_sampling_session", body, key);
  };
  const joined = (counter: number) => [
    200,
    { type: "join_sampling_session", client_counter: counter },
  ];

  it("numbers the clients of a sampling session from 1, for good", async () => {
    expect(await join()).toEqual(joined(1));
    expect(await join()).toEqual(joined(2));
    await app.restart();
    expect(await join()).toEqual(joined(3));
    sampler = await createSampler();
    expect(await join()).toEqual(joined(1));
  });

  it("is only for sampling sessions of one's own", async () => {
    expect((await join("tml-owner-b"))[0]).toBe(404);
    sampler = "nobody:sample:0";
    expect((await join())[0]).toBe(404);
  });
});

describe("retrieve_futures", () => {
  const poll = (prevCursor = 0, client = 0, key?: string): Promise<[number, Json]> => {
    const target = {
      type: "sampling_session",
      sampling_session_id: sampler,
      cloned_sampler_id: client,
    };
    return post("retrieve_futures", { target, prev_cursor: prevCursor }, key);
  };
  const idsOf = ({ completions }: Json): string[] =>
    completions.map(({ request_id: id }: Json) => id as string);

  /** Until a poll waits. */
  async function untilPolled(): Promise<void> {
    const asked = new Request("http://localhost/metrics", {
      headers: { "x-api-key": "tml-owner-a" },
    });
    const metrics = async (): Promise<string> => (await app.handle(asked.clone())).text();
    await expect.poll(metrics).toContain("tinker_waiting_polls 1");
  }

  it("lists every kept result from cursor 0, fetched or not, and what came later from a cursor", async () => {
    const first = await submit(0);
    await retrieve(first);
    const [, one] = await poll();
    expect(one.completions).toEqual([
      {
        state: "finished",
        request_id: first,
        response_payload_uncompressed_size: expect.any(Number),
      },
    ]);
    const second = await submit(1);
    await retrieve(second);
    const [, two] = await poll(one.cursor);
    expect(idsOf(two)).toEqual([second]);
    expect(two.cursor).toBeGreaterThan(one.cursor);
    expect(idsOf((await poll())[1])).toEqual([first, second]);
    await app.restart();
    const third = await submit(2);
    await retrieve(third);
    expect(idsOf((await poll(two.cursor))[1])).toEqual([third]);
    expect(idsOf((await poll())[1])).toEqual([first, second, third]);
  });

  it("reports the size of the fetch", async () => {
    const id = await submit(0, { num_samples: 3 });
    const request = rawRequest(
      "http://localhost",
      "retrieve_future",
      { request_id: id, allow_metadata_only: false },
      { "x-api-key": "tml-owner-a", accept: "application/x-protobuf" },
    );
    const bytes = await (await app.handle(request)).arrayBuffer();
    const [, { completions }] = await poll();
    expect(completions[0].response_payload_uncompressed_size).toBe(bytes.byteLength);
  });

  it("answers as soon as a sample of that client has finished", async () => {
    const arrived = app.engine.gates.close("sample");
    const id = await submit(billion + 5);
    await arrived;
    const waiting = poll(0, 1);
    await untilPolled();
    app.engine.gates.open("sample");
    expect(idsOf((await waiting)[1])).toEqual([id]);
  });

  it("keeps the clients of a sampling session apart", async () => {
    const ids = [await submit(0), await submit(2 * billion), await submit(2 * billion + 1)];
    for (const id of ids) await retrieve(id);
    expect(idsOf((await poll(0, 0))[1])).toEqual([ids[0]]);
    expect(idsOf((await poll(0, 2))[1])).toEqual([ids[1], ids[2]]);
  });

  it("reports failed, cancelled and lost samples as failed", async () => {
    await app.dispose();
    const clock = new ManualClock();
    await open({ clock, limits: { fetchedGraceMs: 1, resultTtlMs: 1 } });
    const arrived = app.engine.gates.close("sample");
    const given = await submit(0);
    await arrived;
    await post("cancel_future", { request_id: given });
    app.engine.gates.open("sample");
    expect((await poll())[1].completions).toEqual([{ state: "failed", request_id: given }]);
    const lost = await submit(1);
    await app.result(lost, { key: "tml-owner-a" });
    await clock.advance(120_000);
    expect((await retrieve(lost))[0]).toBe(410);
    const [, { completions }] = await poll();
    expect(completions).toContainEqual({ state: "failed", request_id: lost });
  });

  it("waits no longer than 30 s, and answers the old cursor then", async () => {
    await app.dispose();
    const clock = new ManualClock();
    await open({ clock, limits: { longPollMs: 300_000, sessionTimeoutMs: 600_000 } });
    const id = await submit(0);
    await retrieve(id);
    const [, { cursor }] = await poll();
    let isAnswered = false;
    const waiting = poll(cursor).finally(() => {
      isAnswered = true;
    });
    await clock.advance(29_000);
    expect(isAnswered).toBe(false);
    await clock.advance(1_000);
    expect(await waiting).toEqual([200, { completions: [], cursor }]);
  });

  it("answers nothing of others, and refuses what cannot be meant", async () => {
    expect((await poll(0, 0, "tml-owner-b"))[0]).toBe(404);
    expect((await poll(-1))[0]).toBe(400);
    expect((await poll(0, -1))[0]).toBe(400);
  });

  it("is answered at once when the server stops", async () => {
    const waiting = poll();
    await untilPolled();
    await app.stop();
    expect(await waiting).toEqual([200, { completions: [], cursor: 0 }]);
    await app.start();
  });
});

describe("flags", () => {
  const config = async (): Promise<Json> =>
    (await post("client/config", { sdk_version: "0.39.0" }))[1];

  it("say what the server offers", async () => {
    expect(await config()).toMatchObject({
      sample_join_sampling_session: true,
      sample_use_retrieve_futures: false,
    });
    const [, dynamic] = await post("client/dynamic_config", { sdk_version: "0.39.0" });
    expect(dynamic).toMatchObject({ sample_cancel_enabled: true });
  });

  it("let clients poll for all samples together where the server wants it", async () => {
    await app.dispose();
    await open({ batchPolling: true });
    expect(await config()).toMatchObject({ sample_use_retrieve_futures: true });
  });
});

it("keeps ids of sequences and numbers of clients over kill -9", async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-sampling-"));
  const server = new ServerProcess({ dataDir, models: realModels, logLevel: "error" });
  try {
    await server.start();
    const send = async (route: string, body: object): Promise<Json> => {
      const origin = `http://127.0.0.1:${server.port}`;
      return (await fetch(rawRequest(origin, route, body))).json();
    };
    const session = { tags: [], user_metadata: {}, sdk_version: "0.39.0", type: "create_session" };
    const { session_id } = await send("create_session", session);
    const { sampling_session_id } = await send("create_sampling_session", {
      session_id,
      sampling_session_seq_id: 0,
      base_model: "qwen3",
      type: "create_sampling_session",
    });
    const join = { sampling_session_id, type: "join_sampling_session" };
    expect((await send("join_sampling_session", join)).client_counter).toBe(1);
    const body = officialSample({
      sampling_session_id,
      seq_id: billion,
      num_samples: 3,
      sampling_params: { max_tokens: 400 },
    });
    const first = await send("asample", body);
    expect(new Set(first.sample_sequence_ids).size).toBe(3);
    await server.kill();
    await server.start();
    expect(await send("asample", body)).toEqual(first);
    expect((await send("join_sampling_session", join)).client_counter).toBe(2);
    const target = { type: "sampling_session", sampling_session_id, cloned_sampler_id: 1 };
    const listed = await send("retrieve_futures", { target, prev_cursor: 0 });
    expect(listed.completions).toMatchObject([{ state: "finished", request_id: first.request_id }]);
  } finally {
    await server.kill();
    rmSync(dataDir, { recursive: true, force: true });
  }
}, 60_000);
