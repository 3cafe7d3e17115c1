import { NotFoundError } from "tinker-ts";
import { describe, expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { json } from "../support/scripted-server.js";
import { datum, serviceTest as it } from "../support/service-test.js";
import { miles, openRl, skyrl, tinkerCloud, tuft, twinkle } from "../support/stand-ins.js";

const warnings = (service: FakeService) =>
  service.log.filter((line) => line.startsWith("warn ")).map((line) => line.slice(5));

const model = { baseModel: "m", rank: 8 };

describe("SkyRL", () => {
  it("warns that the choice of trained layers is ignored, but not the seed", async ({
    service,
  }) => {
    skyrl(service);
    const client = service.client();
    await client.createLoraTrainingClient({ ...model, seed: 3 });
    expect(warnings(service)).toEqual([]);
    await client.createLoraTrainingClient({ ...model, seed: 3, trainMlp: false });
    await client.createLoraTrainingClient({ ...model, trainMlp: false });
    expect(warnings(service)).toEqual([
      "SkyRL ignores trainMlp of an adapter: the layers are not those that were asked for",
    ]);
  });

  it("warns that gradients are not clipped although it reports a norm", async ({ service }) => {
    skyrl(service);
    const training = await service.client().createLoraTrainingClient(model);
    await training.optimStep({ learningRate: 1e-4 });
    expect(warnings(service)).toEqual([]);
    await training.optimStep({ gradClipNorm: 1 });
    await training.trainStep([datum], "cross_entropy", { adamParams: { gradClipNorm: 1 } });
    expect(warnings(service)).toEqual([
      "gradClipNorm 1 may have no effect: SkyRL does not read it",
    ]);
  });

  it("gets a new model for a load, and what was called later runs on that one", async ({
    service,
  }) => {
    skyrl(service);
    const training = await service.client().createLoraTrainingClient(model);
    await training.optimStep();
    const load = training.loadState("tinker://model_9/weights/a");
    const pass = training.forwardBackward([datum], "cross_entropy");
    const step = training.optimStep();
    await Promise.all([load, pass, step]);
    expect(training.modelId).toBe("model_1");
    const sent = (name: "loadWeights" | "optimStep") =>
      service.server
        .requestsTo(name)
        .map(({ json: body }) => [body?.["model_id"], body?.["seq_id"]]);
    expect(sent("loadWeights")).toEqual([
      ["model_0", 2],
      ["model_1", 1],
    ]);
    expect(sent("optimStep")).toEqual([
      ["model_0", 1],
      ["model_1", 3],
    ]);
    expect(warnings(service)).toEqual([
      "this server loads into new models only: training of model_0 goes on as model_1",
    ]);
  });

  it("loads as the first request without a new model", async ({ service }) => {
    skyrl(service);
    const training = await service.client().createLoraTrainingClient(model);
    await training.loadState("tinker://model_9/weights/a");
    expect(training.modelId).toBe("model_0");
  });

  it("that has dropped a sampler: the error says what to do", async ({ service }) => {
    skyrl(service);
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    await sampling.sample({ prompt: [1], samplingParams: { maxTokens: 1 } });
    service.server.handle("sample", () => json({ detail: "Sampling session not found" }, 404));
    const error = await sampling
      .sample({ prompt: [1], samplingParams: { maxTokens: 1 } })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(NotFoundError);
    expect((error as Error).message).toMatch(/not found; sampler .* is gone.*Save the weights/);
  });

  it("is named with what it lacks", async ({ service }) => {
    skyrl(service);
    const client = service.client();
    await expect(client.copyWeights("tinker://r/weights/a")).rejects.toThrow(
      "The server does not offer POST /api/v1/copy_weights, which clients call since 0.26.0",
    );
    await client.close({ status: "success" });
    expect(warnings(service)).toEqual([]);
  });

  it("a checkpoint that does not exist is no missing endpoint", async ({ service }) => {
    skyrl(service);
    service.server.handle("copyWeights", () => json({ detail: "Checkpoint not found: a" }, 404));
    const copy = service.client().copyWeights("tinker://r/weights/a");
    await expect(copy).rejects.toThrow(/Checkpoint not found: a$/);
  });
});

describe("prompt logprobs that do not come back", () => {
  const without = (promptLogprobs: (number | null)[] | null) => ({
    sequences: [{ stopReason: "length" as const, tokens: [7], logprobs: [-1] }],
    promptLogprobs,
  });
  it.for([
    ["left out", null],
    ["nothing but gaps", [null, null, null]],
  ] as const)("are an error: %s", async ([, scores], { service }) => {
    service.server.handle("sample", () =>
      service.accept("SampleResponse", without(scores && [...scores])),
    );
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    await expect(sampling.computeLogprobs([1, 2, 3])).rejects.toThrow(/KL penalty/);
    const scored = sampling.sample({
      prompt: [1, 2, 3],
      samplingParams: { maxTokens: 1 },
      includePromptLogprobs: true,
    });
    await expect(scored).rejects.toThrow(/lacks what includePromptLogprobs asks for/);
    const best = sampling.sample({
      prompt: [1, 2, 3],
      samplingParams: { maxTokens: 1 },
      topkPromptLogprobs: 2,
    });
    await expect(best).rejects.toThrow(/lacks what topkPromptLogprobs asks for/);
  });
});

describe("OpenRL", () => {
  it("warns that the rank is fixed and parameters of samples are ignored", async ({ service }) => {
    openRl(service);
    const client = service.client();
    await client.createLoraTrainingClient({ ...model, seed: 1 });
    expect(warnings(service)).toEqual([
      "nothing that OpenRL answers shows whether it takes seed of an adapter",
      "session-0:train:0: rank 8 was asked for, and OpenRL reports 16; it may have one rank for all adapters",
    ]);
    service.log.length = 0;
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    const samplingParams = { maxTokens: 2, seed: 5, topP: 0.9 };
    await sampling.sample({ prompt: [1], samplingParams });
    await sampling.sample({ prompt: [2], samplingParams });
    await client.close();
    expect(warnings(service)).toEqual(["OpenRL ignores seed, topP of samplingParams"]);
  });

  it("ends samples at its own limit, with one warning", async ({ service }) => {
    openRl(service);
    const sampling = await service.client().createSamplingClient({ baseModel: "m" });
    await sampling.sample({ prompt: [1] });
    await sampling.sample({ prompt: [1] });
    expect(warnings(service)).toEqual([
      "OpenRL ended a sample after 20 tokens: without maxTokens it has a limit of its own; set maxTokens",
    ]);
  });

  it("its words are read, in either of its forms of errors", async ({ service }) => {
    openRl(service);
    const training = await service.client().createLoraTrainingClient(model);
    const failure = { type: "RequestFailedResponse", error_message: "out of memory" };
    service.server.handle("retrieveFuture", () => json(failure, 400));
    await expect(training.optimStep()).rejects.toThrow(/could not be fetched: .*out of memory/);
    service.server.handle("saveWeights", () => json({ error: "model_id is required" }, 400));
    await expect(training.saveState("a")).rejects.toThrow("model_id is required");
  });
});

describe("Miles", () => {
  it("warns that only the rank of an adapter is taken", async ({ service }) => {
    miles(service);
    const client = service.client();
    await client.createLoraTrainingClient({ ...model, seed: 1, trainAttn: false });
    expect(warnings(service)).toEqual([
      "Miles ignores seed, trainAttn of an adapter: the layers are not those that were asked for",
    ]);
  });

  it("its refusals are read", async ({ service }) => {
    miles(service);
    const training = await service.client().createLoraTrainingClient(model);
    await expect(training.forwardBackward([datum], "cross_entropy")).rejects.toThrow(
      /multi-target inputs are not supported/,
    );
  });
});

describe("tinker-cloud", () => {
  it("has samples cancelled, and every future is still polled by itself", async ({ service }) => {
    tinkerCloud(service);
    const pending = json({ type: "try_again", queue_state: "active" });
    const client = service.client();
    const modelPath = "tinker://m-1/sampler_weights/a";
    const sampling = await client.createSamplingClient({ modelPath });
    service.server.handle("retrieveFuture", () => pending);
    const future = sampling.sample({ prompt: [1], samplingParams: { maxTokens: 1 } });
    const ended = expect(future).rejects.toThrow();
    await service.server.until(() => service.server.requestsTo("retrieveFuture").length > 0);
    future.cancel();
    await ended;
    await client.close();
    expect(service.server.requestsTo("cancelFuture")).toHaveLength(1);
    expect(service.server.requestsTo("retrieveFutures")).toEqual([]);
    expect(service.server.requestsTo("finishSession")).toHaveLength(1);
  });

  it("its refusals are read", async ({ service }) => {
    tinkerCloud(service);
    const client = service.client();
    await expect(client.createSamplingClient({ baseModel: "m" })).rejects.toThrow(
      "base-model sampling is not supported by this deployment",
    );
  });

  it("warns that clipping is uncertain when the metrics have no norm", async ({ service }) => {
    tinkerCloud(service);
    const training = await service.client().createLoraTrainingClient(model);
    await training.optimStep({ gradClipNorm: 0.5 });
    expect(warnings(service)).toEqual([
      "gradClipNorm 0.5 may have no effect: no norm of the gradients is among the metrics of the step",
    ]);
    service.server.handle("optimStep", () =>
      service.accept("OptimStepResponse", { metrics: { "grad_norm:mean": 2 } }),
    );
    service.log.length = 0;
    const other = await service.client().createLoraTrainingClient(model);
    await other.optimStep({ gradClipNorm: 0.5 });
    expect(warnings(service)).toEqual([]);
  });
});

describe.for([
  ["TuFT", tuft],
  ["Twinkle", twinkle],
] as const)("%s", ([, standIn]) => {
  it.override({ dialect: "json" });

  it("trains and samples in JSON", async ({ service }) => {
    standIn(service);
    const client = service.client();
    const training = await client.createLoraTrainingClient(model);
    const { metrics } = await training.forwardBackward([datum], "cross_entropy");
    expect(metrics["loss:sum"]).toBeGreaterThanOrEqual(1);
    await training.optimStep();
    const sampling = await client.createSamplingClient({ baseModel: "m" });
    await sampling.sample({ prompt: [1], samplingParams: { maxTokens: 3 } });
    expect(warnings(service)).toEqual([]);
  });

  it("does not show whether it takes the options of an adapter", async ({ service }) => {
    standIn(service);
    await service.client().createLoraTrainingClient({ ...model, trainUnembed: false });
    expect(warnings(service)).toEqual([
      "nothing that this server answers shows whether it takes trainUnembed of an adapter",
    ]);
  });
});

it("Twinkle gives the mean loss; the sum is computed from its logprobs", async ({ service }) => {
  twinkle(service);
  const training = await service.client({ dialect: "json" }).createLoraTrainingClient(model);
  const { metrics } = await training.forwardBackward([datum], "cross_entropy");
  expect(metrics).toEqual({ "loss:avg": 1.5, "loss:sum": 3 });
});
