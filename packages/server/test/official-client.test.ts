import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { decodeProto, encodeProto } from "tinker-ts/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type RunningServer } from "../src/index.js";
import { PythonClient, pythonVersions } from "./support/python-client.js";
import { realModels } from "./support/real-models.js";
import { ServerProcess } from "./support/server-process.js";

type Json = Record<string, unknown>;

let dataDir: string;
let server: RunningServer;
beforeAll(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-official-"));
  server = await startServer({
    port: 0,
    dataDir,
    models: { qwen3: realModels.qwen3 },
    apiKeys: ["tml-key-of-one", "tml-key-of-another"],
    logLevel: "silent",
  });
});
afterAll(async () => {
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const apiKey = "tml-key-of-one";
const open = (options: ConstructorParameters<typeof PythonClient>[1] = {}) =>
  new PythonClient(server.url, { apiKey, ...options });

/** Fields of clients to come: an option, one inside of it, one in a list. */
const extra = { future_option: { deep: [1, { deeper: null }] }, future_flag: true };

async function metricsText(): Promise<string> {
  const response = await fetch(`${server.url}/metrics`, { headers: { "x-api-key": apiKey } });
  return response.text();
}

const speakers = [
  ...pythonVersions.map((version) => ({ name: `version ${version}`, options: { version } })),
  { name: "a version to come", options: { version: "0.39.0", extra } as const },
];

describe.each(speakers)("a program with the official client, $name", ({ options }) => {
  it("trains, saves, loads and samples", async () => {
    const client = open(options);
    const sessionId = await client.session(client.has("0.38.0") ? { display_name: "mine" } : {});
    const modelId = await client.model(sessionId);

    const losses: number[] = [];
    let seq = 1;
    for (let step = 0; step < 3; step++) {
      const { metrics } = await client.run("forward_backward", client.pass(modelId, seq++));
      losses.push((metrics as Record<string, number>)["loss:sum"]!);
      const stepped = await client.run("optim_step", client.optimStep(modelId, seq++));
      expect(stepped).toHaveProperty("metrics");
    }
    expect(losses[2]).toBeLessThan(losses[0]!);

    const metadata = client.has("0.28.0") ? { user_metadata: { epoch: "1" } } : {};
    const save = client.saveWeights(modelId, seq++, { path: "final", ...metadata });
    const saved = await client.run("save_weights", save);
    const named = await client.run(
      "save_weights_for_sampler",
      client.saveForSampler(modelId, seq++, { path: "final", ...metadata }),
    );
    const ephemeral = await client.run(
      "save_weights_for_sampler",
      client.saveForSampler(modelId, seq++, { sampling_session_seq_id: 0 }),
    );

    const config = client.has("0.29.0") ? { optimizer_config: { type: "adamw" } } : {};
    const load = { session_id: sessionId, model_seq_id: 1, path: saved["path"], ...config };
    const loaded = await client.run("load_weights", client.loadWeights(load));
    const again = await client.run("forward_backward", client.pass(String(loaded["model_id"]), 1));
    expect((again["metrics"] as Record<string, number>)["loss:sum"]).toBeLessThan(losses[2]!);

    const samplers = [
      await client.sampler(sessionId, 1, named["path"]),
      String(ephemeral["sampling_session_id"]),
    ];
    for (const samplerId of samplers) {
      const receipt = await client.must("asample", client.sample(samplerId, 0));
      const ids = receipt["sample_sequence_ids"] as string[];
      expect(new Set(ids).size).toBe(2);
      const { sequences } = await client.sampled(receipt);
      expect(sequences.map(({ tokens }) => tokens.length)).toEqual([4, 4]);
    }

    const telemetry = { events: [], platform: "Linux", sdk_version: "x", process_uuid: "u" };
    const reported = await client.post("telemetry", telemetry);
    expect(reported.body).toMatchObject({ status: "accepted" });
    if (client.has("0.29.0")) {
      expect((await client.finish(sessionId)).status).toBe(204);
      expect((await client.heartbeat(sessionId)).status).toBe(410);
    }
  });
});

describe("a field that is not known here", () => {
  it("is counted by client version and name, wherever it is", async () => {
    const client = open({ extra });
    const sessionId = await client.session();
    const modelId = await client.model(sessionId, { model_seq_id: 4 });
    await client.run("optim_step", client.optimStep(modelId, 1));
    await client.run("asample", client.sample(await client.sampler(sessionId, 0), 0));
    await client.finish(sessionId);
    const metrics = await metricsText();
    const fields = [
      "CreateSessionRequest.future_option",
      "CreateModelRequest.lora_config.future_flag",
      "OptimStepRequest.adam_params.future_option",
      "SampleRequest.prompt.chunks.future_flag",
      "SampleRequest.sampling_params.future_option",
      "FinishSessionRequest.future_flag",
    ];
    for (const field of fields) {
      const line = `tinker_ignored_fields_total{client="AsyncTinker/Python 0.39.0",field="${field}"}`;
      expect(metrics).toContain(line);
    }
    expect(metrics).not.toContain("record_stability_info");
  });

  it("of a protobuf request is skipped and counted by its number, spans of provenance are not", async () => {
    const client = open({ version: "0.33.0" });
    const modelId = await client.model(await client.session());
    const span = [0x1a, 0x07, 0x0a, 0x05, 0x0a, 0x01, 0x78, 0x18, 0x03];
    const plain = client.pass(modelId, 1);
    const unknown = [0x98, 0x06, 0x01];
    const { metrics } = await client.run(
      "forward_backward",
      Buffer.concat([withSpans(plain, span), Buffer.from(unknown)]),
    );
    expect(metrics).toHaveProperty("loss:sum");
    const text = await metricsText();
    expect(text).toContain(
      'client="AsyncTinker/Python 0.33.0",field="ForwardBackwardRequest.field 99"',
    );
    expect(text).not.toMatch(/Python 0\.33\.0",field="ForwardBackwardRequest\.field [34]"/);
  });

  it("is kept in mind for so many names only", async () => {
    const client = open({ version: "0.32.0" });
    for (let round = 0; round < 4; round++) {
      const names = Array.from({ length: 20 }, (_, index) => [`name_${round}_${index}`, 1]);
      await client.session(Object.fromEntries(names) as Json);
    }
    const lines = (await metricsText())
      .split("\n")
      .filter((line) => line.includes("Python 0.32.0") && line.includes("ignored_fields"));
    expect(lines.length).toBeLessThanOrEqual(50);
    expect(lines.length).toBeGreaterThan(30);
  });
});

describe("an option that is known and not offered", () => {
  it("is refused at create_model with its name", async () => {
    const client = open();
    const sessionId = await client.session();
    const optimizer_config = { type: "dimuon", version: 1 };
    const answer = await client.post(
      "create_model",
      client.createModel(sessionId, { optimizer_config }),
    );
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/optimizer_config\.type.*dimuon.*adamw/);
  });

  it("fails an optimizer step in its turn, and the next request runs", async () => {
    const client = open();
    const modelId = await client.model(await client.session());
    const optimizer_params = { type: "dimuon", learning_rate: 0.1, grad_clip_norm: 0, beta1: 0.9 };
    const ids = { model_id: modelId, seq_id: 1, type: "optim_step" };
    const failed = await client.run("optim_step", { optimizer_params, ...ids });
    expect(failed["category"]).toBe("user");
    expect(failed["error"]).toMatch(/optimizer_params\.type.*dimuon/);
    // Also where settings of AdamW come along.
    const both = { ...client.optimStep(modelId, 2), optimizer_params };
    expect((await client.run("optim_step", both))["error"]).toMatch(/dimuon/);
    const { metrics } = await client.run("forward_backward", client.pass(modelId, 3));
    expect(metrics).toHaveProperty("loss:sum");
  });

  it("fails a load in its turn, and refuses one that makes a model", async () => {
    const client = open();
    const sessionId = await client.session();
    const modelId = await client.model(sessionId);
    const { path: saved } = await client.run("save_weights", client.saveWeights(modelId, 1));
    const optimizer_config = { type: "dimuon", version: 1 };
    const load = client.loadWeights({
      model_id: modelId,
      seq_id: 2,
      path: saved,
      optimizer_config,
    });
    expect((await client.run("load_weights", load))["error"]).toMatch(/dimuon/);
    const ids = { session_id: sessionId, model_seq_id: 3 };
    const fresh = client.loadWeights({ ...ids, path: saved, optimizer_config });
    expect((await client.post("load_weights", fresh)).status).toBe(400);
  });

  it("takes AdamW by its name as it takes it without", async () => {
    const client = open();
    const sessionId = await client.session();
    const [plain, byName] = [
      await client.model(sessionId, { model_seq_id: 0 }),
      await client.model(sessionId, { model_seq_id: 1 }),
    ];
    // It is the same request for a server that was upgraded in between.
    const { optimizer_config: _, ...older } = client.createModel(sessionId);
    expect(await client.must("create_model", older)).toMatchObject({ model_id: plain });
    const lossAfter = async (modelId: string, step: Json) => {
      await client.run("forward_backward", client.pass(modelId, 1));
      await client.run("optim_step", step);
      const { metrics } = await client.run("forward_backward", client.pass(modelId, 3));
      return (metrics as Record<string, number>)["loss:sum"];
    };
    const { adam_params, ...ids } = client.optimStep(byName, 2);
    const named = { ...ids, optimizer_params: { type: "adamw", ...(adam_params as Json) } };
    expect(await lossAfter(byName, named)).toBe(await lossAfter(plain, client.optimStep(plain, 2)));
  });

  it.each([
    ["POST", "save_weights_external"],
    ["POST", "external_weights_upload_start"],
    ["POST", "create_custom_loss"],
    ["GET", "billing/usage/checkpoints/current"],
    ["DELETE", "auth/apikey/me"],
  ])("as a whole route is answered 404 in words: %s %s", async (method, route) => {
    const answer = await open().send(
      method,
      `/api/v1/${route}`,
      method === "POST" ? {} : undefined,
    );
    expect(answer.status).toBe(404);
    expect(answer.text).toContain(`there is no ${method} /api/v1/${route}`);
  });

  it("refuses a sample in protobuf as a form that is not known, for the client to send JSON", async () => {
    expect((await open().post("asample", new Uint8Array([8, 1]))).status).toBe(415);
  });
});

describe("settings of a loss", () => {
  it("of the newer field win over those of the older", async () => {
    const client = open();
    const modelId = await client.model(await client.session());
    const clipped = ppo(client, modelId, 1, {
      clip_low_threshold: 0.999,
      clip_high_threshold: 1.001,
    });
    const wide = ppo(client, modelId, 2, { clip_low_threshold: 0.1, clip_high_threshold: 9 });
    const lossOf = async (pass: Uint8Array) => {
      const { metrics } = await client.run("forward_backward", pass);
      return (metrics as Record<string, number>)["loss:sum"]!;
    };
    const [low, high] = [await lossOf(clipped), await lossOf(wide)];
    expect(low).not.toBeCloseTo(high, 3);
    const older = ppo(client, modelId, 3, {
      clip_low_threshold: 0.999,
      clip_high_threshold: 1.001,
    });
    const newer = Buffer.concat([
      older,
      setting("clip_low_threshold", number(0.1)),
      setting("clip_high_threshold", number(9)),
    ]);
    expect(await lossOf(newer)).toBeCloseTo(high, 5);
  });

  it("that are texts fail the pass with the name, as do those without a value", async () => {
    const client = open();
    const modelId = await client.model(await client.session());
    const text = setting("clip_low_threshold", [0x12, 0x01, 0x78]);
    const withText = Buffer.concat([client.pass(modelId, 1), text]);
    const failed = await client.run("forward_backward", withText);
    expect(failed).toMatchObject({ category: "user" });
    expect(failed["error"]).toMatch(/loss_fn_config\.clip_low_threshold: expected a number.*"x"/);
    const empty = setting("clip_low_threshold", []);
    const withNothing = Buffer.concat([client.pass(modelId, 2), empty]);
    const refused = await client.run("forward_backward", withNothing);
    expect(refused["error"]).toMatch(/loss_fn_config_v2\.clip_low_threshold: has neither/);
    expect(await client.run("forward_backward", client.pass(modelId, 3))).toHaveProperty("metrics");
  });
});

describe("finishing a session", () => {
  it("keeps the first reason, can be repeated, and stays readable", async () => {
    const client = open();
    const sessionId = await client.session({ display_name: "my run" });
    expect((await client.finish(sessionId, "errored", "ValueError: no")).status).toBe(204);
    expect((await client.finish(sessionId, "success")).status).toBe(204);
    expect((await client.finish(sessionId, "a reason to come")).status).toBe(204);
    expect((await client.get(`sessions/${sessionId}`)).body).toMatchObject({
      user_metadata: { purpose: "test" },
      display_name: "my run",
      finish_reason: { type: "errored" },
      finish_detail: "ValueError: no",
    });
  });

  it("takes no new work: heartbeats, models and samplers are answered 410 with the reason", async () => {
    const client = open();
    const sessionId = await client.session();
    await client.finish(sessionId, "interrupted");
    const refused = [
      await client.heartbeat(sessionId),
      await client.post("create_model", client.createModel(sessionId)),
    ];
    for (const { status, text } of refused) {
      expect(status).toBe(410);
      expect(text).toContain("finished by its client");
      expect(text).toContain("interrupted");
    }
  });

  it("carries out what was accepted before, and its results stay readable", async () => {
    const client = open();
    const sessionId = await client.session();
    const modelId = await client.model(sessionId);
    const receipts: Json[] = [];
    for (let seq = 1; seq <= 6; seq += 2) {
      receipts.push(await client.must("forward_backward", client.pass(modelId, seq)));
      receipts.push(await client.must("optim_step", client.optimStep(modelId, seq + 1)));
    }
    receipts.push(
      await client.must("save_weights", client.saveWeights(modelId, 7, { path: "end" })),
    );
    // Behind a gap that nobody fills any more.
    const behind = await client.must("optim_step", client.optimStep(modelId, 9));
    expect((await client.finish(sessionId)).status).toBe(204);
    for (const receipt of receipts)
      expect(await client.result(receipt)).not.toHaveProperty("error");
    expect((await client.result(behind))["error"]).toMatch(/finished/);
    const { checkpoints } = (await client.get(`training_runs/${modelId}/checkpoints`)).body;
    expect(checkpoints).toMatchObject([{ checkpoint_id: "weights/end" }]);
  });

  it("is a matter of the session's owner", async () => {
    const [client, stranger] = [open(), open({ apiKey: "tml-key-of-another" })];
    const sessionId = await client.session();
    expect((await stranger.finish(sessionId)).status).toBe(404);
    expect((await client.finish("no-such-session")).status).toBe(404);
    expect((await client.heartbeat(sessionId)).status).toBe(200);
  });

  it("holds after a kill, and what was accepted is carried out after the restart", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-finished-"));
    const process = new ServerProcess({
      dataDir: folder,
      models: { qwen3: realModels.qwen3 },
      logLevel: "silent",
    });
    try {
      await process.start();
      const client = new PythonClient(`http://127.0.0.1:${process.port}`);
      const sessionId = await client.session();
      const modelId = await client.model(sessionId);
      const receipts = [
        await client.must("forward_backward", client.pass(modelId, 1)),
        await client.must("optim_step", client.optimStep(modelId, 2)),
        await client.must("save_weights", client.saveWeights(modelId, 3, { path: "end" })),
      ];
      await client.finish(sessionId, "success", "done");
      await process.kill();
      await process.start();
      for (const receipt of receipts)
        expect(await client.result(receipt)).not.toHaveProperty("error");
      expect((await client.heartbeat(sessionId)).status).toBe(410);
      const { body } = await client.get(`sessions/${sessionId}`);
      expect(body).toMatchObject({ finish_reason: { type: "success" }, finish_detail: "done" });
    } finally {
      await process.kill();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("metadata of a checkpoint", () => {
  it("comes back in listings, is replaced with it, and goes when the new one has none", async () => {
    const client = open();
    const modelId = await client.model(await client.session());
    const metadataOf = async () => {
      const listed = (await client.get(`training_runs/${modelId}/checkpoints`)).body;
      return (listed["checkpoints"] as Json[]).map((one) => one["user_metadata"] ?? null);
    };
    const save = (seq: number, fields: Json) =>
      client.run("save_weights", client.saveWeights(modelId, seq, { path: "one", ...fields }));
    await save(1, { user_metadata: { epoch: "1", note: "ü" } });
    expect(await metadataOf()).toEqual([{ epoch: "1", note: "ü" }]);
    await save(2, { overwrite: true, user_metadata: { epoch: "2" } });
    expect(await metadataOf()).toEqual([{ epoch: "2" }]);
    await save(3, { overwrite: true });
    expect(await metadataOf()).toEqual([null]);
    const all = (await client.get("checkpoints")).body["checkpoints"] as Json[];
    expect(all[0]).toMatchObject({ base_model: "qwen3" });
  });

  it("that is too long fails the save with its name", async () => {
    const client = open();
    const modelId = await client.model(await client.session());
    const fields = { path: "one", user_metadata: { note: "x".repeat(70_000) } };
    const failed = await client.run("save_weights", client.saveWeights(modelId, 1, fields));
    expect(failed["error"]).toMatch(/user_metadata: is \d+ characters/);
  });
});

describe("copy_weights", () => {
  it("makes a run that can be loaded and not trained; the same request again is the same copy", async () => {
    const client = open();
    const sessionId = await client.session();
    const modelId = await client.model(sessionId);
    await client.run("forward_backward", client.pass(modelId, 1));
    await client.run("optim_step", client.optimStep(modelId, 2));
    const user_metadata = { epoch: "1" };
    const save = client.saveWeights(modelId, 3, { path: "one", user_metadata });
    const { path: source } = await client.run("save_weights", save);
    const copy = { session_id: sessionId, model_seq_id: 5, source_path: source };
    const { tinker_path: target } = await client.must("copy_weights", copy);
    expect(target).toBe(`tinker://${sessionId}:train:5/weights/one`);
    expect(await client.must("copy_weights", copy)).toEqual({ tinker_path: target });

    const load = { session_id: sessionId, model_seq_id: 6, path: target };
    const loaded = await client.run(
      "load_weights",
      client.loadWeights({ ...load, optimizer: true }),
    );
    const lossOf = async (id: string, seq: number) =>
      (await client.run("forward_backward", client.pass(id, seq)))["metrics"];
    expect(await lossOf(String(loaded["model_id"]), 1)).toEqual(await lossOf(modelId, 4));
    const trained = await client.post("forward_backward", client.pass(`${sessionId}:train:5`, 1));
    expect(trained.status).toBe(410);
    expect(trained.text).toContain("only holds a copy");

    const { path: other } = await client.run(
      "save_weights",
      client.saveWeights(modelId, 5, { path: "two" }),
    );
    const clash = await client.post("copy_weights", { ...copy, source_path: other });
    expect(clash.status).toBe(409);
    const run = (await client.get(`training_runs/${sessionId}:train:5`)).body;
    expect(run).toMatchObject({ last_checkpoint: { tinker_path: target, user_metadata } });
  });

  it("reads the checkpoints of others only with their credential", async () => {
    const [client, other] = [open(), open({ apiKey: "tml-key-of-another" })];
    const modelId = await client.model(await client.session());
    const { path: source } = await client.run("save_weights", client.saveWeights(modelId, 1));
    const sessionId = await other.session();
    const copy = { session_id: sessionId, model_seq_id: 0, source_path: source };
    expect((await other.post("copy_weights", copy)).status).toBe(404);
    const withToken = { ...copy, weights_access_token: apiKey, ttl_seconds: 3600 };
    const { tinker_path: target } = await other.must("copy_weights", withToken);
    const listed = (await other.get("checkpoints")).body["checkpoints"] as Json[];
    expect(listed[0]).toMatchObject({ tinker_path: target });
    expect(listed[0]).toHaveProperty("expires_at");
    expect((await other.post("copy_weights", { ...copy, ttl_seconds: 0 })).text).toContain(
      "ttl_seconds",
    );
  });
});

it("auth/apikey/me describes the key that was sent, the same every time", async () => {
  const first = (await open().get("auth/apikey/me")).body;
  expect(Number.isSafeInteger(first["key_id"])).toBe(true);
  expect(first).toMatchObject({ name: expect.any(String), details: { user_details: {} } });
  expect((await open().get("auth/apikey/me")).body).toEqual(first);
  expect((await open({ apiKey: "tml-key-of-another" }).get("auth/apikey/me")).body).not.toEqual(
    first,
  );
  expect((await open({ apiKey: "unknown-key" }).get("auth/apikey/me")).status).toBe(401);
});

it.each(["all", "checkpoints", "projects", "teams", "organizations"])(
  "the audit log takes the event type %s",
  async (type) => {
    const { status, body } = await open().get(`audit?event_type=${type}`);
    expect(status).toBe(200);
    expect(Array.isArray(body["entries"])).toBe(true);
  },
);

/** The field of the loss's name, which comes behind the data. */
const encodedLossName = 2 + "cross_entropy".length;

/** Adds bytes to the end of the first datum of a pass. */
function withSpans(pass: Uint8Array, span: readonly number[]): Uint8Array {
  const { forwardBackwardInput: input, ...rest } = decodeProto("ForwardBackwardRequest", pass);
  const single = { ...rest, forwardBackwardInput: { ...input, data: input.data.slice(0, 1) } };
  const bytes = encodeProto("ForwardBackwardRequest", single);
  const empty = encodeProto("ForwardBackwardRequest", {
    ...rest,
    forwardBackwardInput: { ...input, data: [] },
  });
  const start = empty.length - encodedLossName;
  const end = bytes.length - encodedLossName;
  // A tag and a length of one or two bytes.
  const headLength = bytes[start + 1]! < 0x80 ? 2 : 3;
  const datum = bytes.subarray(start + headLength, end);
  return Buffer.concat([
    bytes.subarray(0, start),
    message(3, [...datum, ...span]),
    bytes.subarray(end),
  ]);
}

/** An entry of `loss_fn_config_v2`. */
function setting(name: string, value: readonly number[]): Uint8Array {
  return message(7, [...message(1, [...Buffer.from(name)]), ...message(2, value)]);
}

function number(value: number): number[] {
  const bytes = Buffer.alloc(9);
  bytes[0] = 0x09;
  bytes.writeDoubleLE(value, 1);
  return [...bytes];
}

function message(field: number, bytes: readonly number[]): Uint8Array {
  const { length } = bytes;
  const size = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
  return Uint8Array.from([(field << 3) | 2, ...size, ...bytes]);
}

function ppo(
  client: PythonClient,
  modelId: string,
  seqId: number,
  lossFnConfig: Record<string, number>,
): Uint8Array {
  const data = [
    {
      modelInput: [5, 8, 13],
      lossFnInputs: {
        target_tokens: [8, 13, 21],
        logprobs: Float32Array.of(-9, -1, -9),
        advantages: Float32Array.of(1, -1, 1),
      },
    },
  ];
  return client.pass(modelId, seqId, { data, lossFn: "ppo", lossFnConfig } as never);
}
