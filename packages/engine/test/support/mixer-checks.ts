import { Engine, type ModelConfig, type NamedTensors } from "@tinker-ts/engine";
import { expectedTensors, type LayerKind } from "@tinker-ts/hub/weights";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RandomStream } from "../../src/util/random.js";
import { plainLogprobs, plainTensors, type PlainTensors } from "./plain-model.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;
/** Blocks of long sequences have so many tokens, chunks 64. */
const longest = 600;

const common = fc
  .record({
    vocabSize: fc.integer({ min: 11, max: 60 }),
    hiddenSize: fc.integer({ min: 12, max: 24 }),
    intermediateSize: fc.integer({ min: 9, max: 20 }),
    kvHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    headDim: fc.integer({ min: 3, max: 13 }),
    tiedEmbeddings: fc.boolean(),
    qkNorm: fc.boolean(),
    fusedGateUp: fc.boolean(),
    window: fc.option(fc.integer({ min: 3, max: 90 })),
  })
  .map(({ kvHeads, group, window, ...rest }) => ({
    ...rest,
    kvHeads,
    heads: kvHeads * group,
    window,
    // The norm inside the delta rule would divide by next to nothing now and then, which single precision shows.
    normEpsilon: 1e-3,
    rope: { theta: 10_000, scaling: null },
    contextLength: 700,
    qkvBias: false,
    outputBias: false,
    mlpBias: false,
    bosTokenId: null,
    eosTokenIds: [],
  }));

/** Layers of a mixer and one with attention, in any order. */
function kindsOf(
  mixer: NonNullable<LayerKind["mixer"]>,
  window: number | null,
  attentionAt: number,
): readonly LayerKind[] {
  const recurrent = { mixer, window: null, rotation: null };
  const kinds: LayerKind[] = [recurrent, recurrent];
  kinds.splice(attentionAt, 0, { window, rotation: null });
  return kinds;
}

const kernel = fc.integer({ min: 2, max: 5 });
const attentionAt = fc.integer({ min: 0, max: 2 });

const mixers: Readonly<Record<string, fc.Arbitrary<ModelConfig>>> = {
  "the gated delta rule": fc
    .record({
      common,
      attentionAt,
      gatedAttention: fc.boolean(),
      normsPlusOne: fc.boolean(),
      keyHeads: fc.integer({ min: 1, max: 3 }),
      ratio: fc.integer({ min: 1, max: 3 }),
      keyDim: fc.integer({ min: 3, max: 9 }),
      valueDim: fc.integer({ min: 6, max: 11 }),
      kernel,
    })
    .map(({ common: { window, ...rest }, ratio, attentionAt: at, ...own }) => ({
      ...rest,
      architecture: "qwen3_5",
      gatedAttention: own.gatedAttention,
      normsPlusOne: own.normsPlusOne,
      layers: 3,
      layerKinds: kindsOf("deltaRule", window, at),
      deltaRule: {
        keyHeads: own.keyHeads,
        valueHeads: own.keyHeads * ratio,
        keyDim: own.keyDim,
        valueDim: own.valueDim,
        kernel: own.kernel,
      },
    })),
  "a short convolution": fc
    .record({ common, attentionAt, kernel, bias: fc.boolean() })
    .map(({ common: { window, ...rest }, attentionAt: at, ...convolution }) => ({
      ...rest,
      architecture: "lfm2",
      layers: 3,
      layerKinds: kindsOf("convolution", window, at),
      convolution,
    })),
  "Mamba 2": fc
    .record({
      common,
      attentionAt,
      kernel,
      groups: fc.integer({ min: 1, max: 3 }),
      headsPerGroup: fc.integer({ min: 1, max: 3 }),
      headDim: fc.integer({ min: 3, max: 8 }),
      stateSize: fc.integer({ min: 2, max: 9 }),
      convBias: fc.boolean(),
      projectionBias: fc.boolean(),
      timeStep: fc.constantFrom([0, Infinity] as const, [0.3, 1.2] as const),
      residualScale: fc.constantFrom(0.3, 1),
    })
    .map(({ common: { window, ...rest }, attentionAt: at, residualScale, ...own }) => {
      const { headsPerGroup, ...mamba } = own;
      return {
        ...rest,
        architecture: "granite4",
        residualScale,
        logitScale: 0.5,
        layers: 3,
        layerKinds: kindsOf("mamba", window, at),
        mamba: { ...mamba, heads: mamba.groups * headsPerGroup },
      };
    }),
};

function randomWeights(config: ModelConfig, random: RandomStream): NamedTensors {
  return new Map(
    [...expectedTensors(config)].map(([name, shape]) => {
      const length = shape.reduce((product, dim) => product * dim, 1);
      const deviation = shape.length === 2 ? (shape[1] ?? 1) ** -0.5 : 0.3;
      const data = Float32Array.from({ length }, () => deviation * random.nextNormal());
      const isInner = /\.(linear_attn|mamba)\.norm\./.test(name);
      const isScale = name.endsWith("norm.weight") && (isInner || config.normsPlusOne !== true);
      if (isScale) for (const i of data.keys()) data[i]! += 1;
      return [name, { shape, data }];
    }),
  );
}

/** A model, an adapter of two random factors, and the same in double precision. */
async function randomModel(engine: Engine, config: ModelConfig, seed: number) {
  const random = new RandomStream(seed);
  const weights = randomWeights(config, random);
  const model = await engine.createModel(config, { tensors: weights });
  const rank = 1 + Math.floor(random.next() * 4);
  const adapter = await model.createAdapter({ rank, alpha: 2 * rank, seed });
  const { tensors } = await adapter.exportState();
  for (const [name, { data }] of tensors) {
    if (!name.includes("lora_B")) continue;
    for (const i of data.keys()) data[i] = 0.2 * random.nextNormal();
  }
  await adapter.importState({ tensors });
  const plain = { rank, scale: 2, tensors: plainTensors(tensors) };
  return { model, adapter, plain, weights: plainTensors(weights), random };
}

interface Text {
  readonly tokens: readonly number[];
  readonly targets: readonly number[];
  readonly weights: readonly number[];
}

function randomText(length: number, vocabSize: number, random: RandomStream): Text {
  const all = Array.from({ length: length + 1 }, () => Math.floor(random.next() * vocabSize));
  return {
    tokens: all.slice(0, -1),
    targets: all.slice(1),
    weights: all.slice(1).map((token) => (token % 3) / 2),
  };
}

function datumOf({ tokens, targets, weights }: Text) {
  const shape = [tokens.length];
  const inputs = { target_tokens: { data: targets, shape }, weights: { data: weights, shape } };
  return { tokens, inputs };
}

/** Compares so many random configurations of each mixer with plain formulae. */
export function checkMixers(runs: number, timeout: number): void {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.create({ threads: 2 });
  });
  afterAll(() => engine.close());

  describe.each(Object.entries(mixers))("%s", (_, configs) => {
    it(
      "gives the log-probabilities of its formulae, trained and sampled",
      { timeout },
      async () => {
        await fc.assert(
          fc.asyncProperty(configs, fc.integer(), async (config, seed) => {
            const { model, adapter, plain, weights, random } = await randomModel(
              engine,
              config,
              seed,
            );
            const lengths = [
              1 + Math.floor(random.next() * 60),
              64,
              65 + Math.floor(random.next() * 90),
            ];
            const texts = [...lengths, longest].map((length) =>
              randomText(length, config.vocabSize, random),
            );
            const { outputs } = await adapter.forward(texts.map(datumOf), crossEntropy);
            const snapshot = await adapter.snapshot();
            for (const [index, { tokens, targets }] of texts.entries()) {
              const wanted = plainLogprobs(config, weights, tokens, targets, plain);
              const whenRounded = (draws: RandomStream): readonly number[] =>
                plainLogprobs(config, roundedWeights(weights, draws), tokens, targets, plain);
              expectClose(outputs[index]?.logprobs ?? [], wanted, whenRounded);
              const prompt = [...tokens, targets.at(-1) ?? 0];
              const sampled = await model.sample({
                prompt,
                adapter: snapshot,
                maxTokens: 1,
                promptLogprobs: true,
              });
              const own = [...(sampled.promptLogprobs ?? [])].slice(1);
              expectClose(own, wanted, whenRounded);
            }
            await model.unload();
          }),
          { numRuns: runs, seed: 36, endOnFailure: true },
        );
      },
    );

    it("gives every adapted tensor the gradient of finite differences", { timeout }, async () => {
      await fc.assert(
        fc.asyncProperty(configs, fc.integer(), async (config, seed) => {
          const { model, adapter, plain, weights, random } = await randomModel(
            engine,
            config,
            seed,
          );
          const texts = [3, 67].map((length) => randomText(length, config.vocabSize, random));
          await adapter.forwardBackward(texts.map(datumOf), crossEntropy);
          const gradient = await adapter.exportGradient();
          expect([...gradient.keys()].toSorted()).toEqual([...plain.tensors.keys()].toSorted());
          for (const [name, { data }] of gradient) {
            const direction = Float64Array.from(data, () => random.nextNormal());
            const step = 1e-6;
            const lossAt = (distance: number): number => {
              const moved = new Map(plain.tensors);
              const values = plain.tensors.get(name)?.map((v, i) => v + distance * direction[i]!);
              if (values !== undefined) moved.set(name, values);
              return lossOf(config, weights, texts, { ...plain, tensors: moved });
            };
            const wanted = (lossAt(step) - lossAt(-step)) / (2 * step);
            const found = data.reduce((sum, value, i) => sum + value * direction[i]!, 0);
            const size = Math.hypot(...data) * Math.hypot(...direction);
            expect(Math.abs(found - wanted), name).toBeLessThan(1e-4 * size + 1e-6);
          }
          await model.unload();
        }),
        { numRuns: runs, seed: 36, endOnFailure: true },
      );
    });
  });
}

function lossOf(
  config: ModelConfig,
  weights: PlainTensors,
  texts: readonly Text[],
  adapter: Parameters<typeof plainLogprobs>[4],
): number {
  return texts.reduce((sum, { tokens, targets, weights: own }) => {
    const logprobs = plainLogprobs(config, weights, tokens, targets, adapter);
    return sum - logprobs.reduce((total, value, i) => total + value * (own[i] ?? 0), 0);
  }, 0);
}

/**
 * Expects log-probabilities within 1e-4. Some random models are too stiff for that in single precision: their own formulae move
 * nearly as far when every weight changes by one rounding. The engine rounds far more often, so there it may move ten times as far.
 */
function expectClose(
  actual: ArrayLike<number>,
  wanted: readonly number[],
  whenRounded: (random: RandomStream) => readonly number[],
): void {
  const difference = largestDifference(actual, wanted);
  if (difference < 1e-4) return;
  const moves = [1, 2, 3, 4].map((seed) =>
    largestDifference(whenRounded(new RandomStream(seed)), wanted),
  );
  expect(difference).toBeLessThan(10 * Math.max(...moves));
}

/** Weights that are one rounding of single precision up or down from the given ones. */
function roundedWeights(tensors: PlainTensors, random: RandomStream): PlainTensors {
  const move = (value: number): number => value * (1 + (random.next() < 0.5 ? -1 : 1) * 2 ** -24);
  return new Map([...tensors].map(([name, data]) => [name, data.map(move)]));
}

function largestDifference(actual: ArrayLike<number>, wanted: readonly number[]): number {
  return wanted.reduce((most, value, i) => Math.max(most, Math.abs(value - (actual[i] ?? NaN))), 0);
}
