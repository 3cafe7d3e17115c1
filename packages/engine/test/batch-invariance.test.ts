import { Engine, type BaseModel, type ModelConfig, type Snapshot } from "@tinker-ts/engine";
import { expect, it } from "vitest";
import { RandomStream } from "../src/util/random.js";

/** Large enough that the runtime divides products among threads, and picks kernels by their sizes. */
const attention: ModelConfig = {
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

/** Layers with attention between layers of other mixers, of heads in numbers that fit no kernel. */
function hybrid(
  architecture: ModelConfig["architecture"],
  own: Pick<ModelConfig, "deltaRule" | "convolution" | "mamba">,
): ModelConfig {
  const [mixer] = (["deltaRule", "convolution", "mamba"] as const).filter((name) => name in own);
  const recurrent = { ...(mixer === undefined ? {} : { mixer }), window: null, rotation: null };
  const layerKinds = [recurrent, { window: null, rotation: "rope" } as const, recurrent];
  return { ...attention, ...own, architecture, layers: 3, layerKinds };
}

const configs: Readonly<Record<string, ModelConfig>> = {
  attention,
  "the gated delta rule": hybrid("qwen3_5", {
    deltaRule: { keyHeads: 5, valueHeads: 15, keyDim: 48, valueDim: 40, kernel: 4 },
  }),
  "a short convolution": hybrid("lfm2", { convolution: { kernel: 3, bias: true } }),
  "Mamba 2": hybrid("granite4", {
    mamba: {
      heads: 15,
      headDim: 32,
      groups: 3,
      stateSize: 48,
      kernel: 4,
      convBias: true,
      projectionBias: false,
      timeStep: [0, Infinity],
    },
  }),
};

/** An adapter that changes the model's results. */
async function trained(model: BaseModel, rank: number): Promise<Snapshot> {
  const adapter = await model.createAdapter({ rank, seed: rank });
  const random = new RandomStream(rank);
  const tokens = Array.from({ length: 40 }, () =>
    Math.floor(random.next() * model.config.vocabSize),
  );
  const inputs = { target_tokens: { data: tokens, shape: [tokens.length] } };
  for (let step = 0; step < 2; step++) {
    await adapter.forwardBackward([{ tokens, inputs }], { lossFn: "cross_entropy" });
    await adapter.optimStep({ learningRate: 0.02 });
  }
  return adapter.snapshot();
}

const threadCounts = process.env["TINKER_TS_TEST_FULL"] === undefined ? [2] : [1, 2, 4];
const cases = Object.keys(configs).flatMap((mixer) =>
  (mixer === "attention" ? [1, 4] : threadCounts).flatMap((threads) =>
    (["f32", "int8"] as const).map((weights) => ({ mixer, threads, weights })),
  ),
);

it.each(cases)(
  "samples the same bits alone and among adapters of other ranks, by $mixer in $weights with $threads threads",
  async ({ mixer, threads, weights }) => {
    await using engine = await Engine.create({ threads });
    const model = await engine.createModel(configs[mixer] ?? attention, { seed: 1, weights });
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
      // Few rows and many: products are divided among threads differently.
      for (const numSamples of index === 0 ? [1, 9] : [9]) {
        const running = others.map((other) =>
          model.sample({ ...other, maxTokens: 20, numSamples }),
        );
        const { samples } = await model.sample(request);
        await Promise.all(running);
        expect(samples[0]).toEqual(alone[index]);
      }
    }
  },
  120_000,
);
