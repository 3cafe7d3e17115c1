import { describe, expect, it } from "vitest";
import { TensorData, Timestamp } from "../src/index.js";
import { decodeJson, encodeJson, routes, wireTypes } from "../src/wire/index.js";

describe("points of the contract that are easy to get wrong", () => {
  it("the response of an optim step has metrics, not `success`", () => {
    expect(decodeJson("OptimStepResponse", { metrics: { "lr:mean": 1e-4 } })).toEqual({
      metrics: { "lr:mean": 1e-4 },
    });
    expect(decodeJson("OptimStepResponse", {})).toEqual({ metrics: null });
  });

  it("non-finite metrics are strings in JSON, and numbers after decoding", () => {
    const metrics = { most: Infinity, least: -Infinity, none: Number.NaN, one: 1 };
    const json = encodeJson("OptimStepResponse", { metrics });
    expect(json).toEqual({
      metrics: { most: "Infinity", least: "-Infinity", none: "NaN", one: 1 },
    });
    expect(decodeJson("OptimStepResponse", json)).toEqual({ metrics });
  });

  it("a metric that is an object is refused by its name", () => {
    expect(() => decodeJson("OptimStepResponse", { metrics: { loss: { toString: 1 } } })).toThrow(
      /metrics\.loss: expected a number/,
    );
  });

  it("prompt_logprobs of a request is unset, false or true", () => {
    const request = { prompt: [1], samplingParams: {} };
    expect(encodeJson("SampleRequest", request)).not.toHaveProperty("prompt_logprobs");
    for (const promptLogprobs of [true, false]) {
      expect(encodeJson("SampleRequest", { ...request, promptLogprobs })).toMatchObject({
        prompt_logprobs: promptLogprobs,
      });
    }
  });

  it("topk_prompt_logprobs is a list of lists of pairs or null", () => {
    const topk = [null, [[9, -0.25]], []];
    const response = decodeJson("SampleResponse", { sequences: [], topk_prompt_logprobs: topk });
    expect(response.topkPromptLogprobs).toEqual(topk);
  });

  it("weights requests name the checkpoint `path`", () => {
    expect(encodeJson("SaveWeightsRequest", { modelId: "m", path: "n" })).toEqual({
      model_id: "m",
      path: "n",
      overwrite: false,
      type: "save_weights",
    });
    expect(encodeJson("SaveWeightsForSamplerRequest", { modelId: "m", path: "n" })).toEqual({
      model_id: "m",
      path: "n",
      type: "save_weights_for_sampler",
    });
  });

  it("session requests have all their fields and no others", () => {
    expect(fieldsOf("CreateSessionRequest")).toEqual([
      "tags",
      "user_metadata",
      "sdk_version",
      "project_id",
      "display_name",
      "type",
    ]);
    expect(fieldsOf("CreateSamplingSessionRequest")).toEqual([
      "session_id",
      "sampling_session_seq_id",
      "base_model",
      "model_path",
      "type",
    ]);
  });

  it("the response of a poll is try-again, a failure or the result, decoded to its type", () => {
    const decode = (json: unknown) => decodeJson("FutureRetrieveResponse", json);
    expect(
      decode({ type: "try_again", request_id: "r", queue_state: "paused_capacity" }),
    ).toMatchObject({ queueState: "paused_capacity", queueStateReason: null });
    expect(decode({ error: "no", category: "user" })).toEqual({ error: "no", category: "user" });
    expect(decode({ status: "complete_metadata" })).toEqual({
      status: "complete_metadata",
      responsePayloadSize: 0,
    });
    expect(
      decode({
        loss_fn_output_type: "T",
        loss_fn_outputs: [{ logprobs: { data: [-1], dtype: "float32" } }],
        metrics: {},
      }),
    ).toMatchObject({ lossFnOutputs: [{ logprobs: expect.any(TensorData) }] });
    expect(decode({ path: "tinker://a/weights/b", type: "load_weights" })).toMatchObject({
      path: "tinker://a/weights/b",
    });
    expect(decode({ metrics: { "grad_norm:mean": 1 } })).toEqual({
      metrics: { "grad_norm:mean": 1 },
    });
  });

  it("a supported model stays an object", () => {
    const { supportedModels } = decodeJson("GetServerCapabilitiesResponse", {
      supported_models: [{ model_name: "m", max_context_length: 4096, price: 3 }],
    });
    expect(supportedModels).toEqual([
      { modelName: "m", maxContextLength: 4096, unknownFields: { price: 3 } },
    ]);
  });

  it("the archive URL keeps its expiry", () => {
    const { expires } = decodeJson("CheckpointArchiveUrlResponse", {
      url: "u",
      expires: "2026-01-02T03:04:05.678901Z",
    });
    expect(expires).toBeInstanceOf(Timestamp);
    expect(expires.getTime()).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
    expect(expires.text).toBe("2026-01-02T03:04:05.678901Z");
  });

  it("the cursor is typed", () => {
    const cursor = { offset: 1, limit: 2, total_count: 3 };
    expect(decodeJson("CheckpointsListResponse", { checkpoints: [], cursor }).cursor).toEqual({
      offset: 1,
      limit: 2,
      totalCount: 3,
    });
  });

  it("loss_fn_outputs are tensors", () => {
    const { lossFnOutputs } = decodeJson("ForwardBackwardOutput", {
      loss_fn_output_type: "T",
      loss_fn_outputs: [{ logprobs: { data: [-0.5, -1], dtype: "float32", shape: [2] } }],
    });
    expect(lossFnOutputs[0]?.["logprobs"]?.data).toEqual(Float32Array.of(-0.5, -1));
  });

  it("a telemetry batch has platform, version, session and process", () => {
    expect(fieldsOf("TelemetryBatch")).toEqual([
      "events",
      "platform",
      "sdk_version",
      "session_id",
      "process_uuid",
    ]);
  });

  it.each([
    ["USER", "user"],
    ["Server", "server"],
    ["strange", "unknown"],
  ])("reads the failure category %s as %s", (text, category) => {
    expect(decodeJson("RequestFailedResponse", { error: "e", category: text }).category).toBe(
      category,
    );
  });

  it.each([false, 0, "false", "no", "OFF"])("never reads the boolean %s as true", (text) => {
    const run = decodeJson("WeightsInfoResponse", { base_model: "m", is_lora: text });
    expect(run.isLora).toBe(false);
  });

  it("refuses a boolean that is neither true nor false", () => {
    expect(() => decodeJson("WeightsInfoResponse", { base_model: "m", is_lora: "maybe" })).toThrow(
      "is_lora",
    );
  });

  it("a scalar tensor has no shape", () => {
    expect(TensorData.fromNested(3, "float32").shape).toBeNull();
    expect(encodeJson("TensorData", TensorData.fromNested(3, "int64"))).toEqual({
      data: [3],
      dtype: "int64",
    });
  });

  it("lora_config trains everything by default", () => {
    expect(encodeJson("LoraConfig", { rank: 32 })).toEqual({
      rank: 32,
      train_unembed: true,
      train_mlp: true,
      train_attn: true,
    });
  });
});

describe("null, unknown and large", () => {
  it("sends `ttl_seconds: null` but leaves other nulls out", () => {
    expect(encodeJson("SetCheckpointTtlRequest", { ttlSeconds: null })).toEqual({
      ttl_seconds: null,
    });
    expect(decodeJson("SetCheckpointTtlRequest", { ttl_seconds: null })).toEqual({
      ttlSeconds: null,
    });
    expect(encodeJson("SaveWeightsRequest", { modelId: "m", ttlSeconds: null })).not.toHaveProperty(
      "ttl_seconds",
    );
  });

  it("keeps nulls and keys inside the user's own maps", () => {
    const userMetadata = { snake_case: null, camelCase: { deepKey: [null] }, __proto__x: 1 };
    expect(
      encodeJson("CreateSessionRequest", { tags: [], userMetadata, sdkVersion: "1" }),
    ).toMatchObject({ user_metadata: userMetadata });
  });

  it("keeps unknown response fields visible and sends them again", () => {
    const wire = { session_id: "s", type: "create_session", new_flag: { a: [1] } };
    const response = decodeJson("CreateSessionResponse", wire);
    expect(response.unknownFields).toEqual({ new_flag: { a: [1] } });
    expect(encodeJson("CreateSessionResponse", response)).toEqual(wire);
  });

  it("refuses unknown fields of a request when it is written, with the known ones", () => {
    const request = { modelId: "m", pathh: "typo" };
    expect(() => encodeJson("SaveWeightsRequest", request)).toThrow(/pathh.*path, seqId/);
  });

  it("keeps 64-bit seeds and sequence numbers exact through text", () => {
    const text =
      '{"prompt":{"chunks":[]},"sampling_params":{"seed":18446744073709551615},"seq_id":9007199254740993}';
    const request = decodeJson("SampleRequest", text);
    expect(request.samplingParams.seed).toBe(18446744073709551615n);
    expect(request.seqId).toBe(9007199254740993n);
  });

  it("refuses integers that were already rounded or do not fit", () => {
    const request = { prompt: [1], samplingParams: { seed: 2 ** 60 } };
    expect(() => encodeJson("SampleRequest", request)).toThrow(/seed.*pass a bigint/);
    expect(() =>
      decodeJson("Cursor", '{"offset":9007199254740993,"limit":1,"total_count":1}'),
    ).toThrow(/offset.*beyond 2\^53/);
  });

  it("refuses NaN and infinity in JSON", () => {
    expect(() => encodeJson("AdamParams", { learningRate: Number.NaN })).toThrow("learning_rate");
    expect(() => encodeJson("AdamParams", { eps: Infinity })).toThrow("eps");
  });

  it("reads numbers like the reference: integral floats, numeric text, epoch times", () => {
    expect(decodeJson("Cursor", { offset: 1.0, limit: "2", total_count: 3 })).toEqual({
      offset: 1,
      limit: 2,
      totalCount: 3,
    });
    expect(() => decodeJson("Cursor", { offset: 1.5, limit: 2, total_count: 3 })).toThrow("offset");
    const { expires } = decodeJson("CheckpointArchiveUrlResponse", { url: "u", expires: 1e9 });
    expect(expires.toISOString()).toBe("2001-09-09T01:46:40.000Z");
  });

  it("reads chunks of old clients that carry no type", () => {
    const { chunks } = decodeJson("ModelInput", { chunks: [{ tokens: [1, 2] }, { dmel: "AA==" }] });
    expect(chunks.map(({ type }) => type)).toEqual(["encoded_text", "dmel"]);
  });

  it("has no forward_only in JSON", () => {
    const request = { forwardBackwardInput: { data: [], lossFn: "ppo" as const }, modelId: "m" };
    expect(encodeJson("ForwardBackwardRequest", request)).toEqual({
      forward_backward_input: { data: [], loss_fn: "ppo" },
      model_id: "m",
    });
    expect(() => encodeJson("ForwardBackwardRequest", { ...request, forwardOnly: true })).toThrow(
      "forward_only",
    );
  });
});

describe("the route table", () => {
  it("has every endpoint once", () => {
    const keys = Object.values(routes).map(({ method, path }) => `${method} ${path}`);
    expect(keys).toHaveLength(45);
    expect(new Set(keys).size).toBe(45);
  });

  it("names types that exist", () => {
    for (const { request, response } of Object.values(routes)) {
      if (request) expect(wireTypes).toHaveProperty(request);
      if (response) expect(wireTypes).toHaveProperty(response);
    }
  });
});

function fieldsOf(typeName: keyof typeof wireTypes): string[] {
  const { node } = wireTypes[typeName];
  return node.kind === "object" ? [...node.byWireName.keys()] : [];
}
