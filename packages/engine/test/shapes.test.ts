import { Engine, type ModelConfig, type NamedTensors } from "@tinker-ts/engine";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { expectedTensors } from "@tinker-ts/hub/weights";
import { RandomStream } from "../src/util/random.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;
const longRotation = {
  kind: "llama3",
  factor: 4,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  originalContextLength: 32,
} as const;

/** The features of families, in any combination. */
const features = fc
  .record(
    {
      qkNormSpan: fc.constantFrom("head", "all"),
      norms: fc.constantFrom("before", "after", "around"),
      normsPlusOne: fc.boolean(),
      activation: fc.constantFrom("silu", "gelu"),
      fusedQkv: fc.boolean(),
      fusedGateUp: fc.boolean(),
      gatedAttention: fc.boolean(),
      attentionScale: fc.double({ min: 0.1, max: 0.4, noNaN: true }),
      embeddingScale: fc.double({ min: 0.5, max: 4, noNaN: true }),
      residualScale: fc.double({ min: 0.2, max: 1, noNaN: true }),
      logitScale: fc.double({ min: 0.2, max: 1, noNaN: true }),
    },
    { requiredKeys: [] },
  )
  .map((some): Partial<ModelConfig> => some);

const layerKinds = fc.array(
  fc.record({
    // Queries with almost no context have almost no gradient to compare.
    window: fc.option(fc.integer({ min: 4, max: 300 })),
    rotation: fc.option(fc.constantFrom("rope", "localRope")),
  }),
  { minLength: 3, maxLength: 3 },
);

/** Small models of every family and between them, in shapes that fit no kernel. */
const configs: fc.Arbitrary<ModelConfig> = fc
  .record({
    architecture: fc.constantFrom("llama", "qwen2", "qwen3"),
    vocabSize: fc.integer({ min: 11, max: 140 }),
    // With fewer, single precision itself is off by more than the tolerance now and then.
    hiddenSize: fc.integer({ min: 9, max: 50 }),
    intermediateSize: fc.integer({ min: 1, max: 70 }),
    layers: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 5 }),
    halfHeadDim: fc.integer({ min: 1, max: 12 }),
    tiedEmbeddings: fc.boolean(),
    biases: fc.boolean(),
    scaled: fc.boolean(),
    partial: fc.double({ min: 0.2, max: 1, noNaN: true }),
    features,
    layerKinds,
  })
  .map(({ kvHeads, group, halfHeadDim, biases, scaled, partial, features: some, ...rest }) => ({
    ...rest,
    ...some,
    // What a norm sees of fewer is often next to nothing, which it makes as large as everything else.
    intermediateSize: some.norms === undefined ? rest.intermediateSize : rest.intermediateSize + 8,
    kvHeads,
    heads: kvHeads * group,
    headDim: 2 * halfHeadDim,
    normEpsilon: 1e-6,
    rope: { theta: 10_000, scaling: scaled && rest.architecture === "llama" ? longRotation : null },
    localRope: {
      theta: 1000,
      scaling: scaled ? { kind: "linear", factor: 3 } : null,
      rotaryDim: Math.ceil(2 * halfHeadDim * partial),
    },
    contextLength: 700,
    qkvBias: biases || rest.architecture === "qwen2",
    outputBias: biases && rest.architecture !== "qwen2",
    mlpBias: biases && rest.architecture === "llama",
    qkNorm: rest.architecture === "qwen3",
    bosTokenId: null,
    eosTokenIds: [],
  }));

const full = process.env.TINKER_TS_TEST_FULL !== undefined;
const runs = full ? 60 : 5;
const timeout = full ? 300_000 : 30_000;
let engine: Engine;
beforeAll(async () => {
  engine = await Engine.create({ threads: 2 });
});
afterAll(() => engine.close());

function normals(length: number, deviation: number, random: RandomStream): Float32Array {
  return Float32Array.from({ length }, () => deviation * random.nextNormal());
}

function randomWeights(config: ModelConfig, random: RandomStream): NamedTensors {
  return new Map(
    [...expectedTensors(config)].map(([name, shape]) => {
      const length = shape.reduce((product, dim) => product * dim, 1);
      const data = normals(length, (shape[1] ?? 9) ** -0.5, random);
      if (name.endsWith("norm.weight") && config.normsPlusOne !== true) {
        for (const i of data.keys()) data[i]! += 1;
      }
      return [name, { shape, data }];
    }),
  );
}

/** A model with an adapter of two random factors. */
async function randomModel(config: ModelConfig, rank: number, seed: number) {
  const random = new RandomStream(seed);
  const model = await engine.createModel(config, { tensors: randomWeights(config, random) });
  const adapter = await model.createAdapter({ rank, alpha: rank, seed });
  const { tensors } = await adapter.exportState();
  for (const [name, { data }] of tensors) {
    if (name.includes("lora_B")) data.set(normals(data.length, 0.3 / Math.sqrt(rank), random));
  }
  await adapter.importState({ tensors });
  return { model, adapter, random };
}

/** A datum with the next token as target at every position. */
function continuation(tokens: readonly number[]) {
  const shape = [tokens.length - 1];
  return {
    tokens: tokens.slice(0, -1),
    inputs: {
      target_tokens: { data: tokens.slice(1), shape },
      weights: { data: tokens.slice(1).map((token) => token % 3), shape },
    },
  };
}

function largestDifference(actual: ArrayLike<number>, expected: Float32Array): number {
  return expected.reduce((max, value, i) => Math.max(max, Math.abs(value - (actual[i] ?? NaN))), 0);
}

it(
  "gives the same log-probabilities in sampling and training for any shape of model",
  { timeout },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        configs,
        fc.integer({ min: 1, max: 40 }),
        fc.integer(),
        async (config, rank, seed) => {
          const { model, adapter, random } = await randomModel(config, rank, seed);
          const prompt = Array.from({ length: 1 + Math.floor(random.next() * 600) }, () =>
            Math.floor(random.next() * config.vocabSize),
          );
          const { samples, promptLogprobs } = await model.sample({
            adapter: await adapter.snapshot(),
            prompt,
            maxTokens: 6,
            seed,
            promptLogprobs: true,
          });
          const all = [...prompt, ...(samples[0]?.tokens ?? [])];
          const { outputs } = await adapter.forward([continuation(all)], crossEntropy);
          const sampled = [...(promptLogprobs ?? []).slice(1), ...(samples[0]?.logprobs ?? [])];
          const trained = outputs[0]?.logprobs ?? new Float32Array();
          expect(sampled.length).toBe(trained.length);
          expect(largestDifference(sampled, trained)).toBeLessThan(1e-4);
          await model.unload();
        },
      ),
      { numRuns: runs },
    );
  },
);

it("gives any shape of model the same gradient in one call and in many", { timeout }, async () => {
  await fc.assert(
    fc.asyncProperty(
      configs,
      fc.integer({ min: 1, max: 40 }),
      fc.integer(),
      async (config, rank, seed) => {
        const { model, adapter, random } = await randomModel(config, rank, seed);
        const data = [2, 5, 40, 90, 520].map((length) =>
          continuation(Array.from({ length }, () => Math.floor(random.next() * config.vocabSize))),
        );
        await adapter.forwardBackward(data, crossEntropy);
        const together = await adapter.exportGradient();
        await adapter.importState(await adapter.exportState());
        for (const datum of data) await adapter.forwardBackward([datum], crossEntropy);
        for (const [name, { data: apart }] of await adapter.exportGradient()) {
          const whole = together.get(name)?.data ?? new Float32Array();
          const largest = whole.reduce((max, value) => Math.max(max, Math.abs(value)), 1e-6);
          expect(largestDifference(apart, whole) / largest, name).toBeLessThan(1e-4);
        }
        await model.unload();
      },
    ),
    { numRuns: runs },
  );
});

it("reads a sample again when its length changes how it rotates", async () => {
  const factors = (first: number) => Array.from({ length: 4 }, (_, pair) => first + pair);
  // More than a block of a prompt, so that keys of shorter sequences are cached.
  const usual = 70;
  const config: ModelConfig = {
    architecture: "phi3",
    vocabSize: 64,
    hiddenSize: 32,
    intermediateSize: 48,
    layers: 2,
    heads: 4,
    kvHeads: 2,
    headDim: 12,
    normEpsilon: 1e-6,
    rope: {
      theta: 10_000,
      rotaryDim: 8,
      scaling: {
        kind: "longrope",
        shortFactors: factors(1),
        longFactors: factors(5),
        originalContextLength: usual,
        attentionFactor: 1.2,
      },
    },
    contextLength: 200,
    tiedEmbeddings: false,
    qkvBias: false,
    outputBias: false,
    mlpBias: false,
    qkNorm: false,
    fusedQkv: true,
    fusedGateUp: true,
    bosTokenId: null,
    eosTokenIds: [],
  };
  const { model, adapter, random } = await randomModel(config, 4, 3);
  const snapshot = await adapter.snapshot();
  const prompts = [usual - 9, usual, usual + 30].map((length) =>
    Array.from({ length }, () => Math.floor(random.next() * config.vocabSize)),
  );
  const sampled = await Promise.all(
    prompts.map((prompt) =>
      model.sample({ adapter: snapshot, prompt, maxTokens: 20, numSamples: 2, seed: 5 }),
    ),
  );
  for (const [index, { samples }] of sampled.entries()) {
    for (const { tokens, logprobs } of samples) {
      const all = [...(prompts[index] ?? []), ...tokens];
      // Each token depends on those before it and on their number.
      const data = [...tokens.keys()].map((drawn) =>
        continuation(all.slice(0, all.length - tokens.length + drawn + 1)),
      );
      const { outputs } = await adapter.forward(data, crossEntropy);
      const trained = Float32Array.from(outputs, (output) => output.logprobs.at(-1) ?? NaN);
      expect(largestDifference(logprobs, trained)).toBeLessThan(1e-4);
    }
  }
  const alone = await model.sample({
    adapter: snapshot,
    prompt: prompts[0] ?? [],
    maxTokens: 20,
    numSamples: 2,
    seed: 5,
  });
  expect(alone.samples).toEqual(sampled[0]?.samples);
  await model.unload();
});

it("gives a model with one head the same sample in any batch, also with more threads than heads", async () => {
  const config: ModelConfig = {
    architecture: "qwen3",
    vocabSize: 64,
    hiddenSize: 64,
    intermediateSize: 64,
    layers: 1,
    heads: 1,
    kvHeads: 1,
    headDim: 128,
    normEpsilon: 1e-6,
    rope: { theta: 10_000, scaling: null },
    contextLength: 2000,
    tiedEmbeddings: true,
    qkvBias: false,
    outputBias: false,
    mlpBias: false,
    qkNorm: true,
    bosTokenId: null,
    eosTokenIds: [],
  };
  const { model, random } = await randomModel(config, 4, 7);
  const prompt = (length: number) =>
    Array.from({ length }, () => Math.floor(random.next() * config.vocabSize));
  const request = { prompt: prompt(1200), maxTokens: 12, seed: 1 };
  const alone = await model.sample(request);
  // Of the same length and of another: the runtime treats the two apart.
  for (const length of [1200, 900]) {
    const other = model.sample({ prompt: prompt(length), maxTokens: 40, seed: 2 });
    const beside = await model.sample(request);
    await other;
    expect(beside.samples).toEqual(alone.samples);
  }
  await model.unload();
});
