import {
  compressZstd,
  encodeJson,
  encodeProto,
  stringifyJson,
  type WireInput,
} from "tinker-ts/wire";
import { afterEach, expect, it } from "vitest";
import { ManualClock } from "./support/manual-clock.js";
import { passBody, TestApp, type TestAppOptions } from "./support/test-app.js";

let app: TestApp;
afterEach(() => app.dispose());

const keys = [
  { key: "tml-key-ann", owner: "ann" },
  { key: "tml-key-bob", owner: "bob" },
];
const ann = { "x-api-key": "tml-key-ann" };
const bob = { key: "tml-key-bob" };

async function open(options: TestAppOptions): Promise<void> {
  app = await TestApp.open({ apiKeys: keys, ...options });
}

function post(
  path: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const init: RequestInit = { method: "POST", body, headers: { ...ann, ...headers } };
  if (body instanceof ReadableStream) Object.assign(init, { duplex: "half" });
  return app.handle(new Request(`http://localhost/api/v1/${path}`, init));
}

/** A body of which some has been sent. */
async function begin(path: string, sizeBytes: number) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const answer = post(path, readable);
  await writer.write(Buffer.alloc(sizeBytes, " "));
  return { answer, writer };
}

const sessionBody = '{"tags":[],"user_metadata":{},"sdk_version":"x"}';

it("keep what has arrived, not what was announced, from others", async () => {
  await open({ limits: { maxBodyBytes: 1000, maxDecompressedBytes: 1000, maxBodiesBytes: 2000 } });
  const stuck = Array.from({ length: 6 }, () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    return { writable, answer: post("forward_backward", readable, { "content-length": "1000" }) };
  });
  expect((await post("create_session", sessionBody)).status).toBe(200);
  for (const { writable, answer } of stuck) {
    await writable.close();
    expect((await answer).status).toBe(400);
  }
});

it("with too many parts are refused where they are decoded; long lists are not", async () => {
  await open({});
  const metadata = (things: string) =>
    post("create_session", `{"tags":[],"user_metadata":{"a":[${things}]},"sdk_version":"x"}`);
  const refused = await metadata(`${"{},".repeat(30_000)}{}`);
  expect([refused.status, await refused.text()]).toEqual([
    413,
    expect.stringContaining("is too large"),
  ]);
  // Metadata have a bound of their own, which is told of these.
  const long = await metadata(`${"1,".repeat(60_000)}1`);
  expect([long.status, await long.text()]).toEqual([400, expect.stringContaining("user_metadata")]);
});

it("of one owner leave room for those of another, and for signs of life of both", async () => {
  await open({ limits: { maxBodyBytes: 1000, maxDecompressedBytes: 1000, maxBodiesBytes: 2000 } });
  const mine = await app.session({ key: "tml-key-ann" });
  const others = await app.session(bob);
  const first = await begin("create_session", 600);
  const second = await begin("create_session", 390);
  const refused = await post("create_session", sessionBody);
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("1");
  const beat = await app.fetch("sessionHeartbeat", { sessionId: mine }, { key: "tml-key-ann" });
  expect(beat.status).toBe(200);
  const poll = await app.fetch("retrieveFuture", { requestId: "x" }, { key: "tml-key-ann" });
  expect(poll.status).toBe(404);
  await app.call("sessionHeartbeat", { sessionId: others }, bob);
  await app.session(bob);
  for (const { writer, answer } of [first, second]) {
    await writer.write(Buffer.from(sessionBody));
    await writer.close().catch(() => {});
    await answer;
  }
  expect((await post("create_session", sessionBody)).status).toBe(200);
});

it("that trickle in are given up, and those that come steadily are not", async () => {
  const clock = new ManualClock();
  await open({ clock, limits: { minBodyBytesPerSecond: 100, bodyTimeoutMs: 60_000 } });
  const slow = await begin("create_session", 999);
  const steady = await begin("create_session", 1000);
  await clock.advance(10_000);
  const given = await slow.answer;
  expect(given.status).toBe(408);
  expect(given.headers.get("connection")).toBe("close");
  expect(await given.text()).toContain("came too slowly, at 100 bytes/s");
  await steady.writer.write(Buffer.from(sessionBody));
  await steady.writer.close();
  expect((await steady.answer).status).toBe(200);
});

it("that are small and do not come are given up", async () => {
  const clock = new ManualClock();
  await open({ clock });
  const { readable } = new TransformStream<Uint8Array, Uint8Array>();
  const answer = post("create_session", readable, { "content-length": "50" });
  await clock.advance(10_000);
  expect((await answer).status).toBe(408);
  expect((await answer).headers.get("connection")).toBe("close");
});

it("have to be there before their deadline, however fast they come", async () => {
  const clock = new ManualClock();
  await open({ clock, limits: { minBodyBytesPerSecond: 1, bodyTimeoutMs: 25_000 } });
  const endless = await begin("forward_backward", 1000);
  await clock.advance(10_000);
  await endless.writer.write(Buffer.alloc(1000, " "));
  await clock.advance(10_000);
  await endless.writer.write(Buffer.alloc(1000, " "));
  await clock.advance(5000);
  expect(await (await endless.answer).text()).toContain("took more than 25 s");
});

it("may be large for training only", async () => {
  await open({});
  const large = (sizeBytes: number) => ({ "content-length": String(sizeBytes) });
  const statusOf = async (path: string, sizeBytes: number) =>
    (await post(path, "x", large(sizeBytes))).status;
  expect(await statusOf("forward_backward", 128 << 20)).toBe(400);
  expect(await statusOf("forward_backward", (128 << 20) + 1)).toBe(413);
  expect(await statusOf("asample", (4 << 20) + 1)).toBe(413);
  expect(await statusOf("telemetry", (1 << 20) + 1)).toBe(413);
  expect(await statusOf("session_heartbeat", 16_385)).toBe(413);
  expect(await statusOf("create_model", 200_000)).toBe(413);
});

/** A pass that is large in every form. */
function largePass(modelId: string, seqId: number): WireInput<"ForwardBackwardRequest"> {
  const row = Array.from({ length: 60 }, (_, index) => index);
  return passBody(
    modelId,
    seqId,
    Array.from({ length: 300 }, () => row),
  );
}

it("mean the same in every form, also where they are decoded in another thread", async () => {
  await open({});
  const key = { key: "tml-key-ann" };
  const modelId = await app.model(await app.session(key), key);
  const pass = largePass(modelId, 1);
  const json = stringifyJson(encodeJson("ForwardBackwardRequest", pass));
  const proto = encodeProto("ForwardBackwardRequest", pass);
  expect(Math.min(json.length, proto.length)).toBeGreaterThan(64 * 1024);
  const zipped = (await compressZstd(proto)) as Uint8Array<ArrayBuffer>;
  const binary = { "content-type": "application/x-protobuf" };
  const answers = await Promise.all([
    post("forward_backward", json),
    post("forward_backward", proto, binary),
    post("forward_backward", zipped, { ...binary, "content-encoding": "zstd" }),
  ]);
  const requestIds = await Promise.all(
    answers.map(async (answer) => ((await answer.json()) as { request_id: string }).request_id),
  );
  expect(new Set(requestIds)).toEqual(new Set([`${modelId}:1`]));
  expect(await app.result(`${modelId}:1`, key)).toHaveProperty("metrics");
  expect(app.engine.log.filter((line) => line.startsWith("forwardBackward"))).toHaveLength(1);
});

it("fail in their turn when they are large and wrong", async () => {
  await open({ limits: { maxBatchData: 299 } });
  const key = { key: "tml-key-ann" };
  const modelId = await app.model(await app.session(key), key);
  const accepted = await app.call("forwardBackward", largePass(modelId, 1), key);
  expect(await app.result(accepted.requestId, key)).toMatchObject({
    error: "data: must have at least 1 and at most 299 data, got 300",
    category: "user",
  });
});

it("cannot grow without bound: sparse inputs count with their dense size", async () => {
  await open({});
  const key = { key: "tml-key-ann" };
  const modelId = await app.model(await app.session(key), key);
  const sparse = {
    data: [],
    dtype: "int64",
    shape: [1, 2 ** 31 - 1],
    sparse_crow_indices: [0, 0],
    sparse_col_indices: [],
  };
  const datum = {
    model_input: { chunks: [{ tokens: [1] }] },
    loss_fn_inputs: { target_tokens: sparse },
  };
  const body = {
    model_id: modelId,
    seq_id: 1,
    forward_backward_input: { data: [datum], loss_fn: "cross_entropy" },
  };
  const answer = await post("forward_backward", JSON.stringify(body));
  const { request_id } = (await answer.json()) as { request_id: string };
  const { error } = await app.result(request_id, key);
  expect(error).toMatch(/^data: holds 8589934592 bytes/);
});

it("bring long prompts to the sampler in one piece", async () => {
  await open({ limits: { maxPromptTokens: 20_000 } });
  const chunks = (count: number) =>
    Array.from({ length: count }, (_, token) => ({ type: "encoded_text", tokens: [token % 90] }));
  const sample = (count: number) =>
    post(
      "asample",
      JSON.stringify({
        base_model: "toy",
        prompt: { chunks: chunks(count) },
        sampling_params: { max_tokens: 1 },
      }),
    );
  const long = await sample(20_001);
  expect(await long.json()).toMatchObject({
    error: "prompt: has 20001 tokens; at most 20000 are taken",
  });
  const { request_id } = (await (await sample(3000)).json()) as { request_id: string };
  const { error } = await app.result(request_id, { key: "tml-key-ann" });
  expect(error).toMatch(/^prompt: has 3000 tokens, which leaves no room/);
});
