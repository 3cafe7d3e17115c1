import { Engine, type BaseModel, type ModelConfig, type Snapshot } from "@tinker-ts/engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RandomStream } from "../src/util/random.js";

/** Windows that are shorter than a block of a prompt, as long as one, and longer; and a layer that sees all. */
const windows = [40, 64, 150, null];

const config: ModelConfig = {
  architecture: "qwen3",
  vocabSize: 300,
  hiddenSize: 64,
  intermediateSize: 96,
  layers: windows.length,
  heads: 4,
  kvHeads: 2,
  headDim: 16,
  normEpsilon: 1e-6,
  rope: { theta: 10_000, scaling: null },
  contextLength: 2000,
  tiedEmbeddings: false,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  qkNorm: true,
  bosTokenId: null,
  eosTokenIds: [],
  layerKinds: windows.map((window) => ({ window, rotation: "rope" })),
};

const random = new RandomStream(1);
const tokens = Array.from({ length: 700 }, () => Math.floor(random.next() * config.vocabSize));

let engine: Engine;
let model: BaseModel;
let snapshot: Snapshot;
let score: (all: readonly number[]) => Promise<readonly number[]>;
beforeAll(async () => {
  engine = await Engine.create({ threads: 2 });
  model = await engine.createModel(config, { seed: 1 });
  const adapter = await model.createAdapter({ rank: 4, seed: 2 });
  score = async (all) => {
    const inputs = { target_tokens: { data: all.slice(1), shape: [all.length - 1] } };
    const datum = { tokens: all.slice(0, -1), inputs };
    const { outputs } = await adapter.forward([datum], { lossFn: "cross_entropy" });
    return [...(outputs[0]?.logprobs ?? [])];
  };
  snapshot = await adapter.snapshot();
});
afterAll(() => engine.close());

describe("a model with windows", () => {
  // Ends before a cache moves on, at the very token, inside of a block, and in the next larger group.
  it.each([30, 128, 129, 190, 333, 500])(
    "gives the trainer's log-probabilities after %i tokens, far beyond its windows",
    async (length) => {
      const prompt = tokens.slice(0, length);
      const { samples, promptLogprobs } = await model.sample({
        prompt,
        adapter: snapshot,
        maxTokens: 200,
        seed: length,
        promptLogprobs: true,
      });
      const drawn = samples[0]!;
      const expected = await score([...prompt, ...drawn.tokens]);
      const found = [...promptLogprobs!.slice(1), ...drawn.logprobs];
      expect(found).toHaveLength(expected.length);
      for (const [place, logprob] of found.entries()) {
        expect(Math.abs(logprob - expected[place]!), `at ${place}`).toBeLessThan(1e-4);
      }
    },
  );

  it("samples the same bits alone, in a batch, and from a cached prompt", async () => {
    const request = { prompt: tokens.slice(0, 333), adapter: snapshot, maxTokens: 220, seed: 3 };
    const [alone] = (await model.sample(request)).samples;
    const known = await model.sample(request);
    expect(known.promptCacheHitTokens).toBe(320);
    expect(known.samples[0]).toEqual(alone);
    // Others join, leave and move to a larger group while it runs; its row moves with them.
    const others = [20, 333, 470, 650].map((length, index) =>
      model.sample({
        prompt: tokens.slice(0, length),
        maxTokens: 20 + 50 * index,
        numSamples: 2,
        seed: index,
      }),
    );
    const beside = await model.sample({ ...request, numSamples: 2 });
    await Promise.all(others);
    expect(beside.samples[0]).toEqual(alone);
  });
});
