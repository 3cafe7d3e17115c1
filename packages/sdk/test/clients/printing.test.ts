import { inspect } from "node:util";
import { Datum, ModelInput, TensorData } from "tinker-ts";
import { describe, expect, it as test } from "vitest";
import { json } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";

describe("data", () => {
  const example = new Datum({
    modelInput: [1, 2, 3],
    lossFnInputs: { target_tokens: [2, 3, 4], weights: [0.5, 1, 1] },
  });

  test("is written as plain lists", () => {
    expect(JSON.parse(JSON.stringify(example))).toEqual({
      modelInput: { chunks: [{ type: "encoded_text", tokens: [1, 2, 3] }] },
      lossFnInputs: {
        target_tokens: { dtype: "int64", shape: [3], data: [2, 3, 4] },
        weights: { dtype: "float32", shape: [3], data: [0.5, 1, 1] },
      },
    });
    const again = ModelInput.from(JSON.parse(JSON.stringify(example.modelInput)) as ModelInput);
    expect([...again.toInts()]).toEqual([1, 2, 3]);
  });

  test("is printed with its shapes", () => {
    expect(inspect(example)).toBe(
      "Datum(ModelInput(3 tokens: 1, 2, 3); target_tokens: int64 [3]; weights: float32 [3])",
    );
    const tensor = TensorData.fromTypedArray(new Float32Array(8).fill(1 / 3), [2, 4]);
    expect(inspect(tensor)).toBe(
      "TensorData(float32 [2, 4]: 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, …)",
    );
  });

  test("beyond 2^53 is written as text", () => {
    const tensor = new TensorData({ data: BigInt64Array.of(2n ** 60n, 5n) });
    expect(JSON.stringify(tensor)).toContain('"data":["1152921504606846976",5]');
  });
});

describe("clients", () => {
  it("are printed with model, session and server, and never with the key", async ({ service }) => {
    const client = service.client({ apiKey: "tml-secret" });
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    const future = training.optimStep();
    await future;
    const { url } = service.server;
    const texts = [client, training, sampling, future].map((value) => inspect(value));
    expect(texts).toEqual([
      `ServiceClient { baseUrl: "${url}" }`,
      `TrainingClient { modelId: "session-0:train:0", sessionId: "session-0", baseUrl: "${url}" }`,
      `SamplingClient { samplingSessionId: "session-0:sample:0", sessionId: "session-0", baseUrl: "${url}" }`,
      `ApiFuture { operation: "optimStep", subject: "session-0:train:0", state: "done", requestId: "request-1" }`,
    ]);
    expect(JSON.parse(JSON.stringify({ training }))).toMatchObject({
      training: { modelId: "session-0:train:0" },
    });
    expect(JSON.stringify([client, training, sampling])).not.toContain("secret");
  });
});

describe("lists one by one", () => {
  const run = (index: number) => ({
    training_run_id: `run-${index}`,
    base_model: "m",
    model_owner: "me",
    is_lora: true,
    last_request_time: "2026-01-02T03:04:05Z",
  });
  const pages = (total: number, hasCursor: boolean) => (request: { readonly path: string }) => {
    const query = new URL(request.path, "http://x").searchParams;
    const [limit, offset] = [Number(query.get("limit")), Number(query.get("offset"))];
    const all = Array.from({ length: total }, (_, index) => run(index));
    return json({
      training_runs: all.slice(offset, offset + limit),
      ...(hasCursor ? { cursor: { offset, limit, total_count: total } } : {}),
    });
  };

  it.for([true, false])("are loaded page by page (cursor: %s)", async (hasCursor, { service }) => {
    service.server.handle("listTrainingRuns", pages(230, hasCursor));
    const rest = service.client().createRestClient();
    const ids: string[] = [];
    for await (const { trainingRunId } of rest.trainingRuns()) ids.push(trainingRunId);
    expect(ids).toEqual(Array.from({ length: 230 }, (_, index) => `run-${index}`));
    expect(service.server.requestsTo("listTrainingRuns")).toHaveLength(3);
  });

  it("end at the limit, and load no more after a break", async ({ service }) => {
    service.server.handle("listTrainingRuns", pages(1000, true));
    const rest = service.client().createRestClient();
    const ids: string[] = [];
    for await (const { trainingRunId } of rest.trainingRuns({ limit: 130, offset: 5 })) {
      ids.push(trainingRunId);
    }
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([130, "run-5", "run-134"]);
    service.server.seen.length = 0;
    for await (const _ of rest.trainingRuns()) break;
    expect(service.server.requestsTo("listTrainingRuns")).toHaveLength(1);
  });

  it("work for checkpoints and sessions too", async ({ service }) => {
    service.server.handle("listSessions", () => json({ sessions: ["a", "b"] }));
    service.server.handle("listUserCheckpoints", () => json({ checkpoints: [] }));
    const rest = service.client().createRestClient();
    const sessions: string[] = [];
    for await (const id of rest.sessions()) sessions.push(id);
    for await (const _ of rest.userCheckpoints()) expect.fail("there is none");
    expect(sessions).toEqual(["a", "b"]);
  });
});

describe("a sample without a session", () => {
  it.for([{ baseModel: "m" }, { modelPath: "tinker://r/sampler_weights/a" }])(
    "names its source: %o",
    async (source, { service }) => {
      const client = service.client();
      const { sequences } = await client.sample({ ...source, prompt: [1] });
      expect([...sequences[0]!.tokens]).toEqual([7, 8]);
      const [request] = service.server.requestsTo("sample");
      expect(request!.json).not.toHaveProperty("sampling_session_id");
      expect(request!.json).not.toHaveProperty("seq_id");
      expect(request!.json).toMatchObject(
        "baseModel" in source ? { base_model: "m" } : { model_path: source.modelPath },
      );
      expect(service.server.requestsTo("createSession")).toEqual([]);
    },
  );

  it("is retried and cancelled like any other", async ({ service }) => {
    service.server.script("sample", json({}, 429), json({}, 503));
    const client = service.client();
    await client.sample({ baseModel: "m", prompt: [1] });
    expect(service.server.requestsTo("sample")).toHaveLength(3);
    const controller = new AbortController();
    controller.abort(new Error("enough"));
    const { signal } = controller;
    await expect(client.sample({ baseModel: "m", prompt: [1], signal })).rejects.toThrow("enough");
    expect(() => client.sample({ prompt: [1] })).toThrow(/^modelPath: pass modelPath or baseModel/);
    expect(() => client.sample({ baseModel: "m", ...datum, prompt: [1] })).toThrow(
      /unknown option/,
    );
  });
});
