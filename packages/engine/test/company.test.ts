import { Engine, type BaseModel, type ModelConfig, type Snapshot } from "@tinker-ts/engine";
import { expect, it } from "vitest";
import { RandomStream } from "../src/util/random.js";

/** Large enough that the runtime divides products among threads, and picks kernels by their sizes. */
const config: ModelConfig = {
  architecture: "qwen3",
  vocabSize: 500,
  hiddenSize: 384,
  intermediateSize: 640,
  layers: 2,
  heads: 6,
  kvHeads: 2,
  headDim: 48,
  normEpsilon: 1e-6,
  rope: { theta: 10_000, scaling: null },
  contextLength: 1000,
  tiedEmbeddings: false,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  qkNorm: true,
  bosTokenId: null,
  eosTokenIds: [],
};

/** An adapter that changes what the model says. */
async function trained(model: BaseModel, rank: number): Promise<Snapshot> {
  const adapter = await model.createAdapter({ rank, seed: rank });
  const random = new RandomStream(rank);
  const tokens = Array.from({ length: 40 }, () => Math.floor(random.next() * config.vocabSize));
  const inputs = { target_tokens: { data: tokens, shape: [tokens.length] } };
  for (let step = 0; step < 2; step++) {
    await adapter.forwardBackward([{ tokens, inputs }], { lossFn: "cross_entropy" });
    await adapter.optimStep({ learningRate: 0.02 });
  }
  return adapter.snapshot();
}

it.each([1, 4])(
  "samples the same bits alone and among adapters of other ranks, with %i threads",
  async (threads) => {
    await using engine = await Engine.create({ threads });
    const model = await engine.createModel(config, { seed: 1 });
    const adapters: Snapshot[] = [];
    for (const rank of [5, 96, 200, 128]) adapters.push(await trained(model, rank));
    const requests = adapters.map((adapter, index) => ({
      adapter,
      prompt: Array.from({ length: 5 + 30 * index }, (_, token) => (token * 7 + index) % 500),
      maxTokens: 12,
      seed: index,
    }));
    const alone = [];
    for (const request of requests) alone.push((await model.sample(request)).samples[0]);
    for (const [index, request] of requests.entries()) {
      const others = requests.filter((other) => other !== request);
      // Few rows and many: both times other products are divided otherwise.
      for (const numSamples of [1, 9]) {
        const running = others.map((other) =>
          model.sample({ ...other, maxTokens: 20, numSamples }),
        );
        const { samples } = await model.sample(request);
        await Promise.all(running);
        expect(samples[0]).toEqual(alone[index]);
      }
    }
  },
);
