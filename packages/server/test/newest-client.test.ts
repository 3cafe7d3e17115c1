import { policyDatum, SamplingClient, supervisedDatum, type ServiceClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { places, type Place } from "./support/places.js";

/* What the client of this project does like Python 0.39, against the server of this project. */
describe.each(places)("the client $name", ({ name, open }) => {
  const isInside = name === "in process";
  let place: Place;
  let service: ServiceClient;

  beforeAll(async () => {
    place = await open();
    service = place.client();
  });
  afterAll(() => place.close());

  it("finishes its session, and the server keeps the reason and the message", async () => {
    const other = place.client({ displayName: "night run" });
    const training = await other.createLoraTrainingClient({ baseModel: "qwen3", rank: 4 });
    const [sessionId = ""] = training.modelId.split(":");
    const failing = other.run(() => Promise.reject(new RangeError("no rows left")));
    await expect(failing).rejects.toThrow("no rows left");
    const session = await service.createRestClient().getSession(sessionId);
    expect(session).toMatchObject({
      displayName: "night run",
      finishReason: { type: "errored" },
      finishDetail: "RangeError: no rows left",
    });
  });

  it("copies checkpoints that live on without their source, with their metadata", async () => {
    const training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4 });
    await training.trainStep([supervisedDatum([1, 2], [3])], "cross_entropy");
    const userMetadata = { lesson: "1" };
    const { path } = await training.saveState("lesson", { userMetadata });
    const sampler = await training.saveWeightsForSampler("taught", { userMetadata });
    const copy = await service.copyWeights(path, { ttlSeconds: 86_400 });
    expect(copy).toMatch(/^tinker:\/\/.+\/weights\/lesson$/);
    const rest = service.createRestClient();
    await rest.deleteCheckpointFromTinkerPath(path);
    expect(await service.copyWeights(sampler.path)).toMatch(/sampler_weights\/taught$/);
    const [run = ""] = copy.slice("tinker://".length).split("/");
    const { checkpoints } = await rest.listCheckpoints(run);
    expect(checkpoints[0]).toMatchObject({ tinkerPath: copy, userMetadata });
    await service.createTrainingClientFromState(copy);
  });

  it("names the sequences of a sample, and where a datum comes from", async () => {
    const training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4 });
    const sampling = await training.saveWeightsAndGetSamplingClient();
    const samplingParams = { maxTokens: 3, seed: 1 };
    // One answer comes along with the receipt, two at once are polled for.
    const alone = await sampling.sample({ prompt: [1, 2], numSamples: 2, samplingParams });
    const [one, two] = await Promise.all([
      sampling.sample({ prompt: [1, 2], samplingParams, topkSampleLogprobs: 3 }),
      sampling.sample({ prompt: [1, 2], samplingParams }),
    ]);
    const sequences = [alone, one, two].flatMap((response) => response.sequences);
    const ids = sequences.map(({ sequenceId }) => sequenceId);
    expect(ids.every((id) => typeof id === "string" && id !== "")).toBe(true);
    expect(new Set(ids).size).toBe(4);
    expect(one.sequences[0]!.topkLogprobs?.[0]).toHaveLength(3);
    const datum = policyDatum([1, 2], sequences[0]!, 1, { provenance: true });
    expect(datum.provenance?.modelInput[0]?.sequenceId).toBe(ids[0]);
    const { forwardBackward } = await training.trainStep([datum], "importance_sampling");
    expect(forwardBackward.metrics["loss:sum"]).toBeLessThan(0);
  });

  it.skipIf(isInside)("keeps the names of sequences from a side thread", async () => {
    const apart = place.client({ sideThread: true });
    const sampling = await apart.createSamplingClient({ baseModel: "qwen3" });
    const { sequences } = await sampling.sample({
      prompt: [1],
      numSamples: 2,
      samplingParams: { maxTokens: 2 },
    });
    const ids = sequences.map(({ sequenceId }) => sequenceId);
    expect(ids.every((id) => typeof id === "string")).toBe(true);
    expect(new Set(ids).size).toBe(2);
  });

  it("reports a custom loss and its surrogate under names of their own", async () => {
    const training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4 });
    const data = [supervisedDatum([1, 2], [3, 4])];
    const { metrics } = await training.forwardBackwardCustom(data, (_, logprobs) => ({
      loss: 7,
      gradients: logprobs.map(({ data: values }) => new Float32Array(values.length).fill(1)),
    }));
    expect(metrics["loss:sum"]).toBe(7);
    expect(metrics["surrogate_loss:sum"]).toBeLessThan(0);
  });

  it.skipIf(isInside)("lets other processes sample by a handle", async () => {
    const made = await service.createSamplingClient({ baseModel: "qwen3" });
    const handle = made.getSamplerHandle();
    const options = { apiKey: "tml-test-key", telemetry: false };
    await using first = await SamplingClient.fromSamplerHandle(handle, options);
    await using second = await SamplingClient.fromSamplerHandle(handle, options);
    const samples = await Promise.all(
      [made, first, second].map((client) =>
        client.sample({ prompt: [1], samplingParams: { maxTokens: 2 } }),
      ),
    );
    const ids = samples.map(({ sequences }) => sequences[0]!.sequenceId);
    expect(new Set(ids).size).toBe(3);
  });

  it.runIf(isInside)("gives no handle of a server in its own process", async () => {
    const made = await service.createSamplingClient({ baseModel: "qwen3" });
    expect(() => made.getSamplerHandle()).toThrow(/cannot be handed/);
  });
});
