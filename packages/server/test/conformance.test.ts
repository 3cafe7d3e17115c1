import {
  RequestFailedError,
  type Datum,
  type DatumLike,
  type ServiceClient,
  type TrainingClient,
} from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { places, type Place } from "./support/places.js";

const adam = { learningRate: 0.01 };

/** A datum that teaches to continue its own tokens. */
function datum(tokens: readonly number[], weight = 1): DatumLike {
  return {
    modelInput: tokens.slice(0, -1),
    lossFnInputs: {
      target_tokens: tokens.slice(1),
      weights: tokens.slice(1).map(() => weight),
    },
  };
}

const lesson = [datum([5, 8, 13, 21, 34, 55]), datum([3, 6, 9])];
const other = [datum([200, 100, 50, 25])];

describe.each(places)("$name", ({ open }) => {
  let place: Place;
  let service: ServiceClient;
  beforeAll(async () => {
    place = await open();
    service = place.client();
  });
  afterAll(() => place.close());

  const train = (options: { rank?: number; seed?: number; baseModel?: string } = {}) =>
    service.createLoraTrainingClient({ baseModel: "qwen3", rank: 4, seed: 1, ...options });
  const lossOf = async (client: TrainingClient, data: readonly DatumLike[] = lesson) =>
    (await client.forward(data, "cross_entropy")).metrics["loss:sum"]!;

  async function learn(client: TrainingClient, data = lesson, steps = 1): Promise<void> {
    for (let step = 0; step < steps; step++) {
      void client.forwardBackward(data, "cross_entropy");
      await client.optimStep(adam);
    }
  }

  describe("training", () => {
    it("learns: the loss of the lesson falls", async () => {
      const client = await train();
      const before = await lossOf(client);
      await learn(client, lesson, 10);
      expect(await lossOf(client)).toBeLessThan(before / 2);
    });

    it("sums the loss: a datum twice or weights doubled count twice", async () => {
      const client = await train();
      const once = await lossOf(client, [datum([5, 8, 13])]);
      const twice = await lossOf(client, [datum([5, 8, 13]), datum([5, 8, 13])]);
      const heavy = await lossOf(client, [datum([5, 8, 13], 2)]);
      expect(twice).toBeCloseTo(2 * once, 3);
      expect(heavy).toBeCloseTo(2 * once, 3);
    });

    it("adds gradients up over requests until a step uses them", async () => {
      const [together, apart] = [await train(), await train()];
      await learn(together, [...lesson, ...other]);
      void apart.forwardBackward(lesson, "cross_entropy");
      void apart.forwardBackward(other, "cross_entropy");
      await apart.optimStep(adam);
      expect(await lossOf(apart)).toBeCloseTo(await lossOf(together), 3);
    });

    it("leaves no gradient after a forward pass or from data without weight", async () => {
      const [plain, disturbed] = [await train(), await train()];
      await learn(plain);
      void disturbed.forward(other, "cross_entropy");
      void disturbed.forwardBackward([datum([1, 2, 3], 0)], "cross_entropy");
      await learn(disturbed);
      expect(await lossOf(disturbed)).toBeCloseTo(await lossOf(plain), 5);
    });

    it("keeps models apart: gradients, steps and weight decay of one do not reach another", async () => {
      const [still, busy] = [await train(), await train({ seed: 2 })];
      const before = await lossOf(still);
      void busy.forwardBackward(other, "cross_entropy");
      await busy.optimStep({ learningRate: 0.1, weightDecay: 0.5 });
      expect(await lossOf(still)).toBe(before);
    });

    it("returns log-probabilities per datum in their shape, ragged as the data are", async () => {
      const client = await train();
      const { lossFnOutputs } = await client.forwardBackward(lesson, "cross_entropy");
      expect(lossFnOutputs.map(({ logprobs }) => logprobs?.shape)).toEqual([[5], [2]]);
    });

    it("names every metric with its reduction", async () => {
      const client = await train();
      const { metrics } = await client.forwardBackward(lesson, "cross_entropy");
      for (const name of Object.keys(metrics)) expect(name).toMatch(/^[^:]+:[^:]+$/);
      const step = await client.optimStep({ learningRate: 0.01, gradClipNorm: 0.001 });
      expect(step.metrics?.["grad_norm:mean"]).toBeGreaterThan(0);
    });

    it("clips gradients when asked to", async () => {
      const [free, clipped] = [await train(), await train()];
      await learn(free);
      void clipped.forwardBackward(lesson, "cross_entropy");
      const step = await clipped.optimStep({ ...adam, gradClipNorm: 1e-9, eps: 1 });
      expect(step.metrics).toBeDefined();
      expect(await lossOf(clipped)).not.toBeCloseTo(await lossOf(free), 3);
    });

    it.each([
      [
        "a token outside the vocabulary",
        { modelInput: [310], lossFnInputs: {} },
        "data[0].model_input[0] is 310",
      ],
      [
        "no targets",
        { modelInput: [1, 2], lossFnInputs: {} },
        "data[0].loss_fn_inputs.target_tokens",
      ],
      [
        "targets of another length",
        { modelInput: [1, 2], lossFnInputs: { target_tokens: [1], weights: [1] } },
        "data[0]",
      ],
      ["no tokens", { modelInput: [], lossFnInputs: {} }, "data[0]"],
    ])("fails %s as the user's mistake and goes on", async (_, bad, text) => {
      const client = await train();
      const failure: unknown = await client
        .forwardBackward([bad], "cross_entropy")
        .then(undefined, (error: unknown) => error);
      expect(failure).toBeInstanceOf(RequestFailedError);
      expect((failure as RequestFailedError).category).toBe("user");
      expect((failure as Error).message).toContain(text);
      expect(await lossOf(client)).toBeGreaterThan(0);
    });

    it("trains only the chosen parts", async () => {
      const attention = await service.createLoraTrainingClient({
        baseModel: "qwen3",
        rank: 4,
        trainMlp: false,
        trainUnembed: false,
      });
      const { path } = await attention.saveState("attention-only");
      const info = await service.createRestClient().getWeightsInfoByTinkerPath(path);
      expect(info).toMatchObject({ trainAttn: true, trainMlp: false, trainUnembed: false });
    });

    it("computes custom losses in two passes", async () => {
      const client = await train();
      const { metrics } = await client.forwardBackwardCustom(
        lesson,
        (_: readonly Datum[], logprobs) => ({
          loss: 1,
          gradients: logprobs.map(({ data }) => new Float32Array(data.length).fill(-1)),
          metrics: { mine: 7 },
        }),
      );
      expect(metrics["mine"]).toBe(7);
      await client.optimStep(adam);
      expect(await lossOf(client)).toBeLessThan(await lossOf(await train()));
    });
  });

  describe("saving and loading", () => {
    it("restores weights and optimizer so that training goes on exactly", async () => {
      const first = await train({ seed: 3 });
      await learn(first, lesson, 2);
      const { path } = await first.saveState("halfway");
      await learn(first, other, 2);
      const expected = await lossOf(first);
      const resumed = await service.createTrainingClientFromStateWithOptimizer(path);
      await learn(resumed, other, 2);
      expect(await lossOf(resumed)).toBe(expected);
      await first.loadStateWithOptimizer(path);
      await learn(first, other, 2);
      expect(await lossOf(first)).toBe(expected);
    });

    it("starts the optimizer anew when only the weights are loaded", async () => {
      const first = await train({ seed: 3 });
      await learn(first, lesson, 2);
      const { path } = await first.saveState("weights-only");
      const saved = await lossOf(first);
      await learn(first, other, 1);
      const withOptimizer = await lossOf(first);
      const resumed = await service.createTrainingClientFromState(path);
      expect(await lossOf(resumed)).toBe(saved);
      await learn(resumed, other, 1);
      expect(await lossOf(resumed)).not.toBe(withOptimizer);
    });

    it("fails a name that is taken as the user's mistake, unless it may overwrite", async () => {
      const client = await train();
      await client.saveState("again");
      await expect(client.saveState("again")).rejects.toMatchObject({ category: "user" });
      await client.saveState("again", { overwrite: true });
    });

    it("refuses a checkpoint of another rank or another base model", async () => {
      const { path } = await (await train({ rank: 8 })).saveState("rank-8");
      const small = await train();
      await expect(small.loadState(path)).rejects.toMatchObject({ category: "user" });
      const llama = await train({ baseModel: "llama", rank: 8 });
      await expect(llama.loadState(path)).rejects.toThrow("qwen3");
    });
  });

  describe("sampling", () => {
    const greedy = { maxTokens: 6, temperature: 0 };

    it("is greedy with top_k 1 and at temperature 0", async () => {
      const sampler = await service.createSamplingClient({ baseModel: "qwen3" });
      const cold = await sampler.sample({ prompt: [5, 8], samplingParams: greedy });
      const top1 = await sampler.sample({
        prompt: [5, 8],
        samplingParams: { maxTokens: 6, topK: 1, seed: 9 },
      });
      expect(top1.sequences[0]?.tokens).toEqual(cold.sequences[0]?.tokens);
    });

    it("repeats itself under a seed, and samples of one group differ", async () => {
      const sampler = await service.createSamplingClient({ baseModel: "qwen3" });
      const ask = { prompt: [5, 8], numSamples: 3, samplingParams: { maxTokens: 12, seed: 4 } };
      const [first, again] = [await sampler.sample(ask), await sampler.sample(ask)];
      const tokens = (response: typeof first) =>
        response.sequences.map((sequence) => sequence.tokens.join());
      expect(tokens(again)).toEqual(tokens(first));
      expect(new Set(tokens(first)).size).toBe(3);
    });

    it("never sees later training, and never disturbs it", async () => {
      const [watched, control] = [await train({ seed: 6 }), await train({ seed: 6 })];
      const ask = { prompt: [5, 8, 13], samplingParams: greedy, includePromptLogprobs: true };
      await learn(watched, lesson, 3);
      await learn(control, lesson, 3);
      const early = await watched.saveWeightsAndGetSamplingClient();
      const before = await early.sample(ask);
      void early.sample({ ...ask, numSamples: 4 });
      await learn(watched, other, 3);
      await learn(control, other, 3);
      expect(await early.sample(ask)).toEqual({
        ...before,
        promptCacheHitTokens: expect.any(Number) as number,
      });
      const late = await watched.saveWeightsAndGetSamplingClient();
      expect((await late.sample(ask)).promptLogprobs).not.toEqual(before.promptLogprobs);
      expect((await early.sample(ask)).promptLogprobs).toEqual(before.promptLogprobs);
      expect(await lossOf(watched)).toBe(await lossOf(control));
    });

    it("samples adapters of several models beside each other as it samples them alone", async () => {
      const models = await Promise.all([train({ seed: 1 }), train({ seed: 2 })]);
      await learn(models[0], lesson, 5);
      await learn(models[1], other, 5);
      const samplers = await Promise.all(
        models.map((model) => model.saveWeightsAndGetSamplingClient()),
      );
      const ask = { prompt: [5, 8, 13], samplingParams: greedy };
      const answer = async (index: number) =>
        (await samplers[index]!.sample(ask)).sequences[0]!.tokens.join();
      const alone = [await answer(0), await answer(1)];
      expect(alone[0]).not.toBe(alone[1]);
      expect(await Promise.all([answer(0), answer(1), answer(0)])).toEqual([...alone, alone[0]]);
    });

    it("agrees with a forward pass about log-probabilities", async () => {
      const client = await train({ seed: 8 });
      await learn(client, lesson, 2);
      const { lossFnOutputs } = await client.forward([datum([5, 8, 13, 21])], "cross_entropy");
      const sampler = await client.saveWeightsAndGetSamplingClient();
      const logprobs = await sampler.computeLogprobs([5, 8, 13, 21]);
      expect(logprobs[0]).toBeNull();
      const expected = [...lossFnOutputs[0]!["logprobs"]!.data] as number[];
      logprobs.slice(1).forEach((value, index) => expect(value).toBeCloseTo(expected[index]!, 3));
    });

    it("gives the most probable prompt tokens, nothing for the first", async () => {
      const sampler = await service.createSamplingClient({ baseModel: "qwen3" });
      const { topkPromptLogprobs } = await sampler.sample({
        prompt: [5, 8, 13],
        samplingParams: { maxTokens: 1 },
        topkPromptLogprobs: 3,
      });
      expect(topkPromptLogprobs?.map((row) => row?.length ?? null)).toEqual([null, 3, 3]);
    });

    it("stops at stop tokens and at texts across tokens, which stay in the output", async () => {
      const client = await train({ seed: 2, rank: 8 });
      const tokenizer = await client.getTokenizer();
      const tokens = [...tokenizer.encode("ab stop here now")];
      await learn(client, [datum(tokens)], 40);
      const sampler = await client.saveWeightsAndGetSamplingClient();
      const ask = async (stop: string | number[] | null) => {
        const samplingParams = { maxTokens: tokens.length - 1, temperature: 0, stop };
        const prompt = tokens.slice(0, 1);
        const { sequences } = await sampler.sample({ prompt, samplingParams });
        return sequences[0]!;
      };
      const free = await ask(null);
      expect(free.stopReason).toBe("length");
      const [, , third = 0] = free.tokens;
      const atToken = await ask([third]);
      expect([...atToken.tokens]).toEqual(
        [...free.tokens].slice(0, free.tokens.indexOf(third) + 1),
      );
      expect(atToken.stopReason).toBe("stop");
      const stop = tokenizer.decode([...free.tokens].slice(2, 6));
      const atText = await ask(stop);
      expect(atText.tokens).toHaveLength(6);
      expect(tokenizer.decode([...atText.tokens]).endsWith(stop)).toBe(true);
      expect(atText.stopReason).toBe("stop");
    });

    it("reports the part of a prompt that it knew already", async () => {
      const sampler = await service.createSamplingClient({ baseModel: "qwen3" });
      const prompt = Array.from({ length: 200 }, (_, index) => (index * 7) % 300);
      const ask = { prompt, samplingParams: { maxTokens: 1 } };
      await sampler.sample(ask);
      expect((await sampler.sample(ask)).promptCacheHitTokens).toBeGreaterThan(0);
    });

    it("refuses what the model cannot do before anything runs", async () => {
      const sampler = await service.createSamplingClient({ baseModel: "qwen3" });
      await expect(
        sampler.sample({ prompt: [310], samplingParams: { maxTokens: 1 } }),
      ).rejects.toThrow("not in the vocabulary");
      await expect(
        sampler.sample({ prompt: [1], samplingParams: { maxTokens: 600 } }),
      ).rejects.toThrow("context of 512");
      await expect(service.createSamplingClient({ baseModel: "gpt-9" })).rejects.toThrow(
        "not served here",
      );
    });
  });
});
