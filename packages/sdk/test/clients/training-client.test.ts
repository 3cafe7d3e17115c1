import { ArgumentError } from "tinker-ts";
import { describe, expect } from "vitest";
import { json, hang } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";
import { settle } from "../support/test-clock.js";

describe("a training client", () => {
  it("with bad settings is refused before anything is sent", async ({ service }) => {
    const client = service.client();
    const bad = [
      [{ baseModel: "" }, /baseModel/],
      [{ baseModel: "m", rank: 0 }, /rank/],
      [{ baseModel: "m", trainMlp: false, trainAttn: false, trainUnembed: false }, /at least one/],
      [{ baseModel: "m", timeoutMs: -5 }, /timeoutMs/],
    ] as const;
    for (const [options, message] of bad) {
      await expect(client.createLoraTrainingClient(options)).rejects.toThrow(message);
    }
    expect(service.server.seen).toEqual([]);
  });

  it("that is cancelled during creation is unloaded, and a new session is opened", async ({
    service,
  }) => {
    const client = service.client();
    service.server.script("retrieveFuture", hang);
    const controller = new AbortController();
    const { signal } = controller;
    const making = client.createLoraTrainingClient({ baseModel: "m", signal });
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length === 1);
    controller.abort(new Error("enough"));
    await expect(making).rejects.toThrow("enough");
    await service.server.until(() => service.server.requestsTo("unloadModel").length === 1);
    expect(service.server.requestsTo("unloadModel").map(({ json: body }) => body)).toEqual([
      { model_id: "session-0:train:0", type: "unload_model" },
    ]);
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    expect(training.modelId).toBe("session-1:train:0");
  });

  it("that is cancelled does not end a session that others use", async ({ service }) => {
    const client = service.client();
    await client.createLoraTrainingClient({ baseModel: "m" });
    service.server.script("retrieveFuture", hang);
    const controller = new AbortController();
    const making = client.createLoraTrainingClient({ baseModel: "m", signal: controller.signal });
    await service.server.until(() => service.server.requestsTo("createModel").length === 2);
    await settle(10);
    controller.abort();
    await expect(making).rejects.toThrow();
    await settle();
    expect(service.server.requestsTo("unloadModel")).toEqual([]);
    expect(service.log).toEqual([expect.stringMatching(/model session-0:train:1 was given up/)]);
  });

  it("that the server cannot create fails with its message", async ({ service }) => {
    service.server.script("retrieveFuture", json({ error: "no such model", category: "user" }));
    await expect(
      service.client().createLoraTrainingClient({ baseModel: "x" }),
    ).rejects.toMatchObject({ name: "RequestFailedError", message: "no such model" });
    expect(service.server.requestsTo("unloadModel")).toEqual([]);
  });

  it("from a checkpoint reads its settings, creates the same model and loads it", async ({
    service,
  }) => {
    service.server.handle("weightsInfo", () =>
      json({ base_model: "b", is_lora: true, lora_rank: 8, train_unembed: false, train_mlp: null }),
    );
    const client = service.client();
    const path = "tinker://run/weights/a";
    await client.createTrainingClientFromState(path);
    await client.createTrainingClientFromStateWithOptimizer(path, {
      baseModel: "longer",
      userMetadata: { from: "a" },
    });
    expect(service.server.requestsTo("createModel").map(({ json: body }) => body)).toMatchObject([
      {
        base_model: "b",
        lora_config: { rank: 8, train_unembed: false, train_mlp: true, train_attn: true },
      },
      { base_model: "longer", user_metadata: { from: "a" } },
    ]);
    expect(service.server.requestsTo("loadWeights").map(({ json: body }) => body)).toEqual([
      { model_id: "session-0:train:0", seq_id: 1, path, optimizer: false, type: "load_weights" },
      { model_id: "session-0:train:1", seq_id: 1, path, optimizer: true, type: "load_weights" },
    ]);
  });

  it("from a checkpoint in one request if the server supports it", async ({ service }) => {
    service.flags["create_model_via_load_weights"] = true;
    const client = service.client();
    const training = await client.createTrainingClientFromState("tinker://run/weights/a", {
      weightsAccessToken: "tml-owner",
    });
    expect(training.modelId).toBe("session-0:train:0");
    expect(service.server.requestsTo("loadWeights")[0]!.json).toEqual({
      session_id: "session-0",
      model_seq_id: 0,
      path: "tinker://run/weights/a",
      optimizer: false,
      weights_access_token: "tml-owner",
      type: "load_weights",
    });
    expect(service.server.requestsTo("createModel")).toEqual([]);
    await training.optimStep();
    expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 1 });
  });

  it("from another owner's checkpoint uses the owner's credential", async ({ service }) => {
    service.server.handle("weightsInfo", () =>
      json({ base_model: "b", is_lora: true, lora_rank: 8 }),
    );
    const weightsAccessToken = "tml-owner";
    await service
      .client()
      .createTrainingClientFromState("tinker://run/weights/a", { weightsAccessToken });
    expect(service.server.requestsTo("weightsInfo")[0]!.headers["x-api-key"]).toBe("tml-owner");
    expect(service.server.requestsTo("createSession")).toHaveLength(1);
    expect(service.server.requestsTo("loadWeights")[0]!.json).toMatchObject({
      weights_access_token: "tml-owner",
    });
  });

  it("from a checkpoint without LoRA is refused", async ({ service }) => {
    service.server.handle("weightsInfo", () => json({ base_model: "b", is_lora: false }));
    const client = service.client();
    await expect(client.createTrainingClientFromState("tinker://r/weights/a")).rejects.toThrow(
      /not a LoRA checkpoint/,
    );
    await expect(client.createTrainingClientFromState("r/weights/a")).rejects.toThrow(/tinker:/);
  });

  it("saves and loads under checked names", async ({ service }) => {
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    expect(() => training.saveState("")).toThrow(/^name: /);
    expect(() => training.saveState("a/b")).toThrow(/^name: /);
    expect(() => training.saveState("a", { ttlSeconds: 0 })).toThrow(/^ttlSeconds: /);
    expect(() => training.loadState("weights/a")).toThrow(/^path: /);
    await training.saveState("a", { ttlSeconds: 5, overwrite: true });
    await training.loadState("tinker://r/weights/a");
    await training.loadStateWithOptimizer("tinker://r/weights/a");
    const { path } = await training.saveWeightsForSampler("s");
    expect(path).toBe("tinker://run/sampler_weights/s");
    expect(service.server.requestsTo("saveWeights")[0]!.json).toEqual({
      model_id: "session-0:train:0",
      path: "a",
      seq_id: 1,
      ttl_seconds: 5,
      overwrite: true,
      type: "save_weights",
    });
    expect(service.server.requestsTo("saveWeightsForSampler")[0]!.json).toEqual({
      model_id: "session-0:train:0",
      path: "s",
      seq_id: 4,
      type: "save_weights_for_sampler",
    });
    service.server.script(
      "saveWeightsForSampler",
      service.accept("SaveWeightsForSamplerResponseInternal", {}),
    );
    await expect(training.saveWeightsForSampler("t")).rejects.toThrow(/returned no path/);
  });

  it("returns the server's info, with the tokenizer's id cut", async ({ service }) => {
    service.server.handle("getInfo", () =>
      json({
        model_id: "session-0:train:0",
        model_data: { model_name: "org/model", tokenizer_id: "org/tokenizer:rev" },
      }),
    );
    const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
    expect((await training.getInfo()).modelData).toMatchObject({ tokenizerId: "org/tokenizer" });
  });

  it.for([
    [[], "cross_entropy", undefined, /^data: /],
    [[datum], "made_up", undefined, /^lossFn: /],
    [[datum], "ppo", { x: Number.NaN }, /^lossFnConfig.x: /],
    [
      [
        {
          modelInput: { chunks: [{ location: "u", format: "png" }] },
          lossFnInputs: {},
        },
      ],
      "cross_entropy",
      undefined,
      /^data\[0\].modelInput: an image asset pointer/,
    ],
    [
      [{ modelInput: [1], lossFnInputs: { other: [1] } }],
      "cross_entropy",
      undefined,
      /^data\[0\].lossFnInputs.other: .*no dtype/,
    ],
  ] as const)(
    "refuses %j before anything is sent",
    async ([data, lossFn, lossFnConfig, message], { service }) => {
      const training = await service.client().createLoraTrainingClient({ baseModel: "m" });
      const call = () => training.forwardBackward(data as never, lossFn as never, { lossFnConfig });
      expect(call).toThrow(ArgumentError);
      expect(call).toThrow(message);
      // It took no place in the order.
      await training.optimStep();
      expect(service.server.requestsTo("optimStep")[0]!.json).toMatchObject({ seq_id: 1 });
    },
  );
});
