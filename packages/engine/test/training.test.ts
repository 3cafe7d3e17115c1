import {
  Engine,
  type Adapter,
  type AdapterOptions,
  type BaseModel,
  type NamedTensors,
  type ParameterExport,
} from "@tinker-ts/engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countingDatum, raggedData } from "./support/engine-data.js";
import { families, fixtureData, readExpected, readTensors } from "./support/fixture-model.js";
import { fixture } from "./support/fixtures.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;

/** Largest difference of two sets of tensors, relative to the largest value of each tensor. */
function relativeDifference(actual: NamedTensors, expected: NamedTensors): number {
  let worst = 0;
  for (const [name, { data }] of expected) {
    const own = actual.get(name)?.data ?? new Float32Array();
    let [largest, difference] = [1e-30, 0];
    for (const [index, value] of data.entries()) {
      largest = Math.max(largest, Math.abs(value));
      difference = Math.max(difference, Math.abs(value - (own[index] ?? NaN)));
    }
    worst = Math.max(worst, difference / largest);
  }
  return worst;
}

describe("training through an engine", () => {
  let engine: Engine;
  let model: BaseModel;

  beforeAll(async () => {
    engine = await Engine.create({ threads: 2 });
    model = await engine.loadModel(fixture("qwen3/model"));
  });
  afterAll(() => engine.close());

  async function gradientOf(
    run: (adapter: Adapter) => Promise<unknown>,
    options: Partial<AdapterOptions> = {},
  ): Promise<NamedTensors> {
    const adapter = await model.createAdapter({ rank: 4, seed: 3, ...options });
    await run(adapter);
    const gradient = await adapter.exportGradient();
    await adapter.release();
    return gradient;
  }

  async function trainFourSteps(disturbed: boolean): Promise<ParameterExport> {
    const adapter = await model.createAdapter({ rank: 8, seed: 11 });
    const noise: Promise<unknown>[] = [];
    for (let step = 0; step < 4; step++) {
      if (disturbed) {
        const snapshot = await adapter.snapshot();
        const request = { prompt: [1, 2, 3], maxTokens: 40, numSamples: 4 };
        noise.push(model.sample({ ...request, adapter: snapshot }), model.sample(request));
      }
      await adapter.forwardBackward(raggedData(10, 90), crossEntropy);
      await adapter.optimStep({ learningRate: 1e-3, weightDecay: 0.01, gradClipNorm: 1 });
    }
    await Promise.all(noise);
    const state = await adapter.exportState({ optimizer: true });
    await adapter.release();
    return state;
  }

  it.each(families)("ends three optimizer steps on %s where PyTorch does", async (family) => {
    const expected = readExpected(family);
    const own = await engine.loadModel(fixture(`${family}/model`));
    const adapter = await own.createAdapter({ rank: expected.rank, alpha: expected.alpha });
    const tensors = await readTensors(`${family}/adapter/adapter_model.safetensors`);
    await adapter.importState({ tensors });
    for (const { adam_params: adam, loss_sum: loss, grad_norm: norm } of expected.adam_steps) {
      const data = fixtureData(expected, "cross_entropy");
      const { metrics } = await adapter.forwardBackward(data, crossEntropy);
      const report = await adapter.optimStep({
        learningRate: adam.learning_rate,
        beta1: adam.beta1,
        beta2: adam.beta2,
        eps: adam.eps,
        weightDecay: adam.weight_decay,
        gradClipNorm: adam.grad_clip_norm,
      });
      expect(metrics["loss:sum"]).toBeCloseTo(loss, 2);
      // Adam's first steps make the least differences as large as the others.
      const isStiff = family === "qwen3_5";
      expect(Math.abs(report.gradientNorm / norm - 1)).toBeLessThan(isStiff ? 2e-3 : 5e-4);
      expect(report.learningRate).toBe(adam.learning_rate);
    }
    const after = await readTensors(`${family}/adapter_after_steps.safetensors`);
    const { tensors: trained } = await adapter.exportState();
    expect(relativeDifference(trained, after)).toBeLessThan(1e-3);
    await own.unload();
  });

  it("learns its training data", async () => {
    const adapter = await model.createAdapter({ rank: 8, seed: 1 });
    const data = [countingDatum(10, 30), countingDatum(100, 20)];
    const before = await adapter.forward(data, crossEntropy);
    for (let step = 0; step < 30; step++) {
      void adapter.forwardBackward(data, crossEntropy);
      await adapter.optimStep({ learningRate: 1e-2 });
    }
    const after = await adapter.forward(data, crossEntropy);
    expect(before.metrics["loss:sum"]).toBeGreaterThan(200);
    expect(after.metrics["loss:sum"]).toBeLessThan(10);
    await adapter.release();
  });

  it("accumulates gradients: two calls equal one with all data, and a doubled weight equals two", async () => {
    const [a, b] = [countingDatum(3, 17), countingDatum(50, 40)];
    const together = await gradientOf((one) => one.forwardBackward([a, b], crossEntropy));
    const apart = await gradientOf(async (one) => {
      await one.forwardBackward([a], crossEntropy);
      await one.forwardBackward([b], crossEntropy);
    });
    const doubled = await gradientOf((one) =>
      one.forwardBackward([countingDatum(3, 17, 2)], crossEntropy),
    );
    const twice = await gradientOf((one) => one.forwardBackward([a, a], crossEntropy));
    expect(relativeDifference(apart, together)).toBeLessThan(1e-4);
    expect(relativeDifference(twice, doubled)).toBeLessThan(1e-4);
  });

  it("gives the same result for any division of the work by memory", async () => {
    const data = [...raggedData(24, 120), countingDatum(0, 505), countingDatum(9, 512)];
    const results = [];
    for (const memoryBytes of [2e9, 300e6]) {
      const other = await Engine.create({ threads: 2, memoryBytes });
      const own = await other.loadModel(fixture("qwen3/model"));
      const adapter = await own.createAdapter({ rank: 4, seed: 2 });
      const { metrics, outputs } = await adapter.forwardBackward(data, crossEntropy);
      results.push({ metrics, outputs, gradient: await adapter.exportGradient() });
      await other.close();
    }
    const [roomy, tight] = results;
    if (roomy === undefined || tight === undefined) throw new Error("unreachable");
    expect(tight.metrics["loss:sum"]).toBeCloseTo(roomy.metrics["loss:sum"] ?? NaN, 1);
    expect(relativeDifference(tight.gradient, roomy.gradient)).toBeLessThan(1e-4);
  });

  it("repeats bit for bit with samples in between", async () => {
    expect(await trainFourSteps(true)).toEqual(await trainFourSteps(false));
  });

  it("resumes exactly from an exported state", async () => {
    const data = raggedData(6, 50);
    const step = { learningRate: 1e-3, beta2: 0.99 };
    const first = await model.createAdapter({ rank: 4, seed: 5 });
    await first.forwardBackward(data, crossEntropy);
    await first.optimStep(step);
    const saved = await first.exportState({ optimizer: true });
    const second = await model.createAdapter({ rank: 4, seed: 99 });
    await second.importState(saved, { optimizer: true });
    for (const adapter of [first, second]) {
      await adapter.forwardBackward(data, crossEntropy);
      await adapter.optimStep(step);
    }
    const [one, other] = await Promise.all([
      first.exportState({ optimizer: true }),
      second.exportState({ optimizer: true }),
    ]);
    expect(other).toEqual(one);
  });

  it("keeps adapters apart", async () => {
    const [one, other] = await Promise.all([
      model.createAdapter({ rank: 4, seed: 1 }),
      model.createAdapter({ rank: 16, seed: 2, trainMlp: false, trainUnembed: false }),
    ]);
    const before = await other.exportState();
    await one.forwardBackward([countingDatum(1, 20)], crossEntropy);
    await one.optimStep({ learningRate: 0.1, weightDecay: 0.5 });
    await other.optimStep({ learningRate: 0 });
    expect(await other.exportState()).toEqual(before);
    expect([...before.tensors.keys()].every((name) => name.includes("self_attn"))).toBe(true);
  });

  it.each([
    { trainAttn: true, trainMlp: false, trainUnembed: false },
    { trainAttn: false, trainMlp: true, trainUnembed: false },
    { trainAttn: false, trainMlp: false, trainUnembed: true },
    { trainAttn: false, trainMlp: true, trainUnembed: true },
  ])(
    "trains only $trainAttn/$trainMlp/$trainUnembed, with the gradients of a full adapter",
    async (flags) => {
      const data = [...raggedData(5, 60), countingDatum(4, 512)];
      const pass = (adapter: Adapter) => adapter.forwardBackward(data, crossEntropy);
      const whole = await gradientOf(pass);
      const part = await gradientOf(pass, flags);
      const expected = new Map([...whole].filter(([name]) => part.has(name)));
      expect(part.size).toBeGreaterThan(0);
      expect(relativeDifference(part, expected)).toBeLessThan(1e-5);
    },
  );

  it("adds no gradients of a failed or cancelled call", async () => {
    const adapter = await model.createAdapter({ rank: 4, seed: 6 });
    await adapter.forwardBackward([countingDatum(1, 10)], crossEntropy);
    const before = await adapter.exportGradient();
    const controller = new AbortController();
    const cancelled = adapter.forwardBackward(raggedData(60, 200), {
      ...crossEntropy,
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("changed my mind")),
    });
    await expect(cancelled).rejects.toThrow("changed my mind");
    const length = 4;
    const huge = {
      tokens: new Int32Array(length),
      inputs: {
        target_tokens: { data: new Int32Array(length), shape: [length] },
        logprobs: { data: new Float32Array(length).fill(-1e4), shape: [length] },
        advantages: { data: new Float32Array(length).fill(1), shape: [length] },
      },
    };
    await expect(
      adapter.forwardBackward([countingDatum(1, 5), huge].slice(1), {
        lossFn: "importance_sampling",
      }),
    ).rejects.toThrow("data[0]: the loss at target 0 is -Infinity");
    expect(await adapter.exportGradient()).toEqual(before);
  });

  it("trains many targets per position like a sum over single ones", async () => {
    const length = 12;
    const tokens = Int32Array.from({ length }, (_, index) => index);
    const shape = [length, 2];
    const both = {
      tokens,
      inputs: {
        target_tokens: {
          data: Int32Array.from({ length: length * 2 }, (_, index) => (index * 5) % 300),
          shape,
        },
        weights: {
          data: Float32Array.from({ length: length * 2 }, (_, index) => (index % 3) / 2),
          shape,
        },
      },
    };
    const single = [0, 1].map((column) => ({
      tokens,
      inputs: {
        target_tokens: {
          data: both.inputs.target_tokens.data.filter((_, index) => index % 2 === column),
          shape: [length],
        },
        weights: {
          data: both.inputs.weights.data.filter((_, index) => index % 2 === column),
          shape: [length],
        },
      },
    }));
    const adapter = await model.createAdapter({ rank: 4, seed: 4 });
    const other = await model.createAdapter({ rank: 4, seed: 4 });
    const { outputs, metrics } = await adapter.forwardBackward(
      [both, countingDatum(7, 9)],
      crossEntropy,
    );
    const apart = await other.forwardBackward([...single, countingDatum(7, 9)], crossEntropy);
    expect(outputs[0]?.shape).toEqual(shape);
    expect(outputs[1]?.shape).toEqual([9]);
    expect(metrics["loss:sum"]).toBeCloseTo(apart.metrics["loss:sum"] ?? NaN, 3);
    const difference = relativeDifference(
      await adapter.exportGradient(),
      await other.exportGradient(),
    );
    expect(difference).toBeLessThan(1e-4);
    const [first, second] = apart.outputs;
    for (let row = 0; row < length; row++) {
      expect(outputs[0]?.logprobs[row * 2]).toBeCloseTo(first?.logprobs[row] ?? NaN, 4);
      expect(outputs[0]?.logprobs[row * 2 + 1]).toBeCloseTo(second?.logprobs[row] ?? NaN, 4);
    }
  });

  it("leaves no gradient after a forward call", async () => {
    const adapter = await model.createAdapter({ rank: 4 });
    const scored = await adapter.forward([countingDatum(1, 10)], crossEntropy);
    const { gradientNorm } = await adapter.optimStep({ learningRate: 0 });
    const trained = await adapter.forwardBackward([countingDatum(1, 10)], crossEntropy);
    expect(gradientNorm).toBe(0);
    expect(trained.metrics["loss:sum"]).toBeCloseTo(scored.metrics["loss:sum"] ?? NaN, 3);
  });

  it("reports progress, also within one long datum", async () => {
    const adapter = await model.createAdapter({ rank: 4 });
    const seen: number[] = [];
    await adapter.forwardBackward([countingDatum(1, 500)], {
      ...crossEntropy,
      onProgress: ({ doneTokens }) => seen.push(doneTokens),
    });
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.at(-1)).toBe(500);
  });

  it("reports progress over many data", async () => {
    const adapter = await model.createAdapter({ rank: 4 });
    const seen: number[] = [];
    const data = raggedData(40, 200);
    await adapter.forwardBackward(data, {
      ...crossEntropy,
      onProgress: ({ doneTokens }) => seen.push(doneTokens),
    });
    expect(seen.length).toBeGreaterThan(1);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen.at(-1)).toBe(data.reduce((sum, { tokens }) => sum + tokens.length, 0));
  });
});
