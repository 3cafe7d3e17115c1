import { Engine, type BaseModel, type TokenEvent } from "@tinker-ts/engine";
import { loadTokenizer } from "@tinker-ts/hub";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countingDatum, raggedData } from "./support/engine-data.js";
import { readExpected } from "./support/fixture-model.js";
import { fixture } from "./support/fixtures.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;

describe("sampling through an engine", () => {
  let engine: Engine;
  let model: BaseModel;

  beforeAll(async () => {
    engine = await Engine.create({ threads: 2 });
    model = await engine.loadModel(fixture("qwen3/model"));
  });
  afterAll(() => engine.close());

  it("samples from the snapshot's weights, unaffected by later training", async () => {
    const adapter = await model.createAdapter({ rank: 8, seed: 1 });
    const step = async () => {
      await adapter.forwardBackward([countingDatum(5, 30)], crossEntropy);
      await adapter.optimStep({ learningRate: 3e-2 });
    };
    await step();
    const snapshot = await adapter.snapshot();
    const request = { prompt: [5, 6, 7], maxTokens: 12, seed: 3, adapter: snapshot };
    const before = await model.sample(request);
    for (let i = 0; i < 5; i++) await step();
    const later = await adapter.snapshot();
    expect(await model.sample(request)).toEqual(before);
    expect(await model.sample({ ...request, adapter: later })).not.toEqual(before);
  });

  it("answers during a long training call, and the reverse", async () => {
    const adapter = await model.createAdapter({ rank: 8 });
    const order: string[] = [];
    const training = adapter
      .forwardBackward(raggedData(60, 200), crossEntropy)
      .then(() => order.push("training"));
    const sampling = model
      .sample({ prompt: [1, 2, 3], maxTokens: 5, seed: 1 })
      .then(() => order.push("short sample"));
    await Promise.all([training, sampling]);
    expect(order).toEqual(["short sample", "training"]);

    const long = model
      .sample({ prompt: [1, 2, 3], maxTokens: 200, numSamples: 4, seed: 1 })
      .then(() => order.push("long sample"));
    const short = adapter
      .forwardBackward([countingDatum(1, 20)], crossEntropy)
      .then(() => order.push("short training"));
    await Promise.all([long, short]);
    expect(order.slice(2)).toEqual(["short training", "long sample"]);
  });

  it("streams tokens", async () => {
    const events: TokenEvent[] = [];
    const { samples } = await model.sample({
      prompt: [9, 8, 7],
      maxTokens: 9,
      numSamples: 2,
      onToken: (event) => events.push(event),
    });
    for (const [index, { tokens }] of samples.entries()) {
      const own = events.filter(({ sampleIndex }) => sampleIndex === index);
      expect(own.map(({ token }) => token)).toEqual([...tokens]);
    }
  });

  it("stops at a text of the model's tokenizer", async () => {
    const { prompt, tokens } = readExpected("qwen3").base_greedy;
    const tokenizer = await loadTokenizer(fixture("qwen3/model"));
    // The greedy tokens spell "... @ juthe ...", from the pieces "@", " ju" and "the".
    const stop = "@ jut";
    const { samples } = await model.sample({
      prompt,
      maxTokens: tokens.length,
      temperature: 0,
      stopStrings: [stop],
    });
    const generated = samples[0]?.tokens ?? new Int32Array();
    expect(samples[0]?.stopReason).toBe("stop");
    expect(tokenizer.decode(generated)).toContain(stop);
    expect(tokenizer.decode(generated.slice(0, -1))).not.toContain(stop);
  });

  it.each([
    { name: "everywhere", part: "lora_B", values: Infinity },
    { name: "for a single token", part: "lm_head.lora_B", values: 4 },
  ])("fails only the request with an adapter out of range $name", async (broke) => {
    const adapter = await model.createAdapter({ rank: 4 });
    const { tensors } = await adapter.exportState();
    for (const [name, { data }] of tensors) {
      if (name.includes(broke.part)) data.fill(3e38, 0, Math.min(broke.values, data.length));
    }
    await adapter.importState({ tensors });
    const request = { prompt: [1, 2, 3], maxTokens: 5, seed: 1 };
    const broken = { ...request, adapter: await adapter.snapshot() };
    const [healthy, ...failed] = await Promise.allSettled([
      model.sample({ ...request, maxTokens: 30 }),
      model.sample({ ...broken, numSamples: 3 }),
      model.sample({ ...broken, promptLogprobs: true }),
    ]);
    expect(healthy.status).toBe("fulfilled");
    for (const result of failed) {
      expect(result).toMatchObject({ reason: { code: "not_finite", category: "user" } });
    }
  });

  it("cancels", async () => {
    const controller = new AbortController();
    const cancelled = model.sample({
      prompt: [1],
      maxTokens: 500,
      signal: controller.signal,
      onToken: () => controller.abort(new Error("no longer wanted")),
    });
    await expect(cancelled).rejects.toThrow("no longer wanted");
    const { samples } = await model.sample({ prompt: [1], maxTokens: 3 });
    expect(samples[0]?.tokens.length).toBe(3);
  });

  it.each([
    [{ prompt: [] }, "prompt is empty"],
    [{ prompt: [1, 310] }, "prompt[1] is 310; token ids are whole numbers from 0 to 309"],
    [
      { prompt: new Int32Array(513) },
      "prompt has 513 tokens, more than the model's context of 512",
    ],
    [{ maxTokens: -1 }, "maxTokens is -1"],
    [{ temperature: -0.1 }, "temperature is -0.1"],
    [{ temperature: NaN }, "temperature is NaN"],
    [{ topP: 1.1 }, "topP is 1.1"],
    [{ topK: 2.5 }, "topK is 2.5"],
    [{ numSamples: 0 }, "numSamples is 0"],
    [{ seed: 0.5 }, "seed is 0.5"],
    [{ stopTokens: [400] }, "stopTokens is 400"],
    [{ stopStrings: [""] }, "stopStrings is an empty string"],
    [{ stopStrings: Array.from({ length: 1025 }, () => "a") }, "stopStrings is 1025"],
    [{ stopStrings: ["a".repeat(65_537)] }, "stopStrings is 65537 characters"],
  ])("refuses a request because of its %o", async (wrong, message) => {
    const request = model.sample({ prompt: [1], maxTokens: 1, ...wrong });
    await expect(request).rejects.toMatchObject({ name: "EngineError", category: "user" });
    await expect(model.sample({ prompt: [1], maxTokens: 1, ...wrong })).rejects.toThrow(message);
  });

  it("refuses a snapshot of another model and one that was released", async () => {
    const other = await engine.loadModel(fixture("llama/model"));
    const adapter = await other.createAdapter({ rank: 4 });
    const snapshot = await adapter.snapshot();
    const request = { prompt: [1], maxTokens: 1, adapter: snapshot };
    await expect(model.sample(request)).rejects.toThrow("belongs to another model");
    await snapshot.release();
    await expect(other.sample(request)).rejects.toThrow("snapshot was released");
    await other.unload();
  });
});
