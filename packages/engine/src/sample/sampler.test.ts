import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  families,
  loadFixtureModel,
  readExpected,
  readTensors,
  type Expected,
} from "../../test/support/fixture-model.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { sitesOfFlags } from "../model/sites.js";
import { FairTurns } from "../util/turns.js";
import { adapterLayout } from "../model/parameter-layout.js";
import { MergedWeights } from "../train/merged-weights.js";
import { ParameterState } from "../train/parameter-state.js";
import { prepareData } from "../train/prepare-data.js";
import { Trainer } from "../train/trainer.js";
import { trainingBudget } from "../train/training-budget.js";
import { at } from "../util/arrays.js";
import { RandomStream } from "../util/random.js";
import { noAdapter, type FrozenAdapter } from "./adapter-set.js";
import { promptBlock } from "./prefix-cache.js";
import { Constraint } from "../constrain/constraint.js";
import { makeTokenTable } from "../constrain/token-table.js";
import { checkSampleOptions, type SampleOptions } from "./request.js";
import type { SampleCall, SampleResult } from "./sequence.js";
import { Sampler } from "./sampler.js";

const everything = { trainAttn: true, trainMlp: true, trainUnembed: true };
const base = noAdapter();

function newSampler(model: ModelRuntime, limits: { kvBytes?: number; prefixBytes?: number } = {}) {
  const options = { kvBytes: 1e8, prefixBytes: 1e8, maxRows: 32, ...limits };
  return new Sampler(model, options, new FairTurns());
}

function randomPrompt(model: ModelRuntime, length: number, seed: number): Int32Array {
  const random = new RandomStream(seed);
  return Int32Array.from({ length }, () => Math.floor(random.next() * model.config.vocabSize));
}

describe.each(families)("sampling from %s", (family) => {
  let model: ModelRuntime;
  let expected: Expected;
  let adapter: FrozenAdapter;

  beforeAll(async () => {
    model = await loadFixtureModel(family, 2);
    expected = readExpected(family);
    const sites = sitesOfFlags(model.config, everything);
    const layout = adapterLayout(model.config, sites, expected.rank);
    const state = new ParameterState(layout, new Float32Array(layout.length));
    state.import(
      { tensors: await readTensors(`${family}/adapter/adapter_model.safetensors`) },
      false,
    );
    adapter = {
      id: "fixture",
      rank: expected.rank,
      scale: expected.alpha / expected.rank,
      sites,
      layout,
      values: state.freeze(),
    };
  });
  afterAll(() => model.release());

  const table = makeTokenTable(0, () => new Uint8Array());

  function sample(
    sampler: Sampler,
    options: SampleOptions,
    more: Partial<SampleCall> = {},
  ): Promise<SampleResult> {
    const checked = checkSampleOptions(model.config, options);
    return sampler.sample({ options: checked, adapter: base, ...more });
  }

  /** Log-probabilities that a training pass gives for a prompt and its continuation. */
  async function trainerLogprobs(
    prompt: Int32Array,
    tokens: Int32Array,
    used: FrozenAdapter,
  ): Promise<Float32Array> {
    const all = Int32Array.of(...prompt, ...tokens);
    const shape = [all.length - 1];
    const datum = {
      tokens: all.slice(0, -1),
      inputs: {
        target_tokens: { data: all.slice(1), shape },
        weights: { data: new Float32Array(all.length - 1), shape },
      },
    };
    const own = used.id !== "base";
    const trained = { kind: "adapter", sites: own ? used.sites : [], merged: false } as const;
    const budget = trainingBudget(model.config, 1e9);
    const trainer = new Trainer(model, trained, budget, new MergedWeights(model));
    const { outputs } = await trainer.run({
      ...prepareData(model.config, [datum], "cross_entropy"),
      parameters: { ...used, version: 0 },
      pause: () => Promise.resolve(),
    });
    return at(outputs, 0).logprobs;
  }

  it("gives the same samples in parts as in one call", async () => {
    const options = { prompt: randomPrompt(model, 9, 3), maxTokens: 5, seed: 7 };
    const sampler = newSampler(model);
    const whole = await sample(sampler, { ...options, numSamples: 3 });
    const first = await sample(sampler, { ...options, numSamples: 1 });
    const rest = await sample(sampler, { ...options, numSamples: 2, firstSample: 1 });
    const tokensOf = ({ samples }: SampleResult) => samples.map(({ tokens }) => [...tokens]);
    expect([...tokensOf(first), ...tokensOf(rest)]).toEqual(tokensOf(whole));
  });

  it("reads prompts of scopes in turns, and reuses those of the same scope only", async () => {
    const sampler = newSampler(model);
    const ended: string[] = [];
    const ask = async (cacheScope: string, length: number, seed: number) => {
      const prompt = randomPrompt(model, length, seed);
      const result = await sample(sampler, { prompt, maxTokens: 1, cacheScope });
      ended.push(cacheScope);
      return result.promptCacheHitTokens;
    };
    const length = promptBlock + 2;
    await Promise.all([...[1, 2, 3, 4].map((seed) => ask("ann", length, seed)), ask("bob", 2, 5)]);
    expect(ended.indexOf("bob")).toBeLessThanOrEqual(1);
    expect([await ask("bob", length, 1), await ask("ann", length, 1)]).toEqual([0, promptBlock]);
  });

  const prompts = ["base_greedy", "base_greedy_long"] as const;
  it.each(prompts)("gives PyTorch's greedy tokens (%s)", async (name) => {
    const { prompt, tokens, logprobs } = expected[name] ?? expected.base_greedy;
    const result = await sample(newSampler(model), {
      prompt,
      maxTokens: tokens.length,
      temperature: 0,
    });
    const [greedy] = result.samples;
    expect([...(greedy?.tokens ?? [])]).toEqual(tokens);
    expect(greedy?.stopReason).toBe("length");
    for (const [index, logprob] of logprobs.entries()) {
      expect(Math.abs(at(greedy?.logprobs ?? [], index) - logprob)).toBeLessThan(1e-4);
    }
  });

  it("gives PyTorch's most likely tokens at every prompt position", async () => {
    const { prompt } = expected.base_greedy;
    const { topkPromptLogprobs } = await sample(newSampler(model), {
      prompt,
      maxTokens: 1,
      topkPromptLogprobs: 3,
    });
    expect(topkPromptLogprobs?.length).toBe(prompt.length);
    for (const [position, want] of expected.prompt_topk3.entries()) {
      const found = topkPromptLogprobs?.[position];
      if (want === null) {
        expect(found).toBeNull();
        continue;
      }
      expect(found?.map(({ token }) => token)).toEqual(want.map(([token]) => token));
      for (const [index, [, logprob]] of want.entries()) {
        expect(Math.abs((found?.[index]?.logprob ?? NaN) - logprob)).toBeLessThan(1e-4);
      }
    }
  });

  it.each([
    { length: 5, name: "a short prompt" },
    { length: 200, name: "a prompt of several blocks" },
    { length: 470, name: "a prompt that fills most of the context" },
  ])("agrees with a training pass on $name, with and without adapter", async ({ length }) => {
    const prompt = randomPrompt(model, length, length);
    for (const used of [base, adapter]) {
      const { samples, promptLogprobs } = await sample(
        newSampler(model),
        { prompt, maxTokens: 20, seed: 5, promptLogprobs: true },
        { adapter: used },
      );
      const generated = at(samples, 0);
      const trained = await trainerLogprobs(prompt, generated.tokens, used);
      const own = [...(promptLogprobs ?? []).slice(1), ...generated.logprobs];
      expect(own.length).toBe(trained.length);
      for (const [index, logprob] of own.entries()) {
        expect(Math.abs(logprob - at(trained, index))).toBeLessThan(1e-4);
      }
    }
  });

  /** Log-probabilities at temperature 1 of all tokens at every position but the first. */
  async function distributions(text: readonly number[]): Promise<Map<number, number>[]> {
    const { topkPromptLogprobs } = await sample(newSampler(model), {
      prompt: text,
      maxTokens: 0,
      topkPromptLogprobs: model.config.vocabSize,
    });
    return (topkPromptLogprobs ?? [])
      .slice(1)
      .map((top) => new Map(top?.map(({ token, logprob }) => [token, logprob])));
  }

  it.each([
    { temperature: 0.3 },
    { temperature: 1 },
    { temperature: 2.5 },
    { temperature: 0.7, topK: 3 },
    { temperature: 0.7, topP: 0.4 },
    { temperature: 0, divisor: 1 },
    { temperature: 0, topK: 5, divisor: 1 },
    { temperature: 1e-40, divisor: 1e-20 },
  ])("reports log-probabilities of the distribution drawn from: %o", async (drawn) => {
    const { divisor = drawn.temperature, ...options } = drawn;
    const prompt = [...randomPrompt(model, 5, 9)];
    const { samples } = await sample(newSampler(model), {
      ...options,
      prompt,
      maxTokens: 3,
      numSamples: 8,
      seed: 4,
    });
    for (const { tokens, logprobs } of samples) {
      const said = (await distributions([...prompt, ...tokens])).slice(prompt.length - 1);
      for (const [index, token] of tokens.entries()) {
        const scaled = [...at(said, index).values()].map((logprob) => logprob / divisor);
        const top = Math.max(...scaled);
        const total = scaled.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
        const own = (at(said, index).get(token) ?? NaN) / divisor;
        const want = own - top - Math.log(total);
        expect(Math.abs(at(logprobs, index) - want)).toBeLessThan(1e-3);
      }
    }
  });

  it("reports log-probabilities of prompts at temperature 1", async () => {
    const request = { prompt: randomPrompt(model, 9, 2), maxTokens: 1, promptLogprobs: true };
    const warm = await sample(newSampler(model), { ...request, topkPromptLogprobs: 2 });
    const cold = await sample(newSampler(model), {
      ...request,
      topkPromptLogprobs: 2,
      temperature: 0.2,
    });
    expect(cold.promptLogprobs).toEqual(warm.promptLogprobs);
    expect(cold.topkPromptLogprobs).toEqual(warm.topkPromptLogprobs);
  });

  it("gives a seeded request the same samples beside any other work", async () => {
    const request = { prompt: randomPrompt(model, 70, 1), maxTokens: 30, seed: 42, numSamples: 3 };
    const alone = await sample(newSampler(model), request, { adapter });
    const sampler = newSampler(model);
    const others = Array.from({ length: 6 }, (_, index) =>
      sample(
        sampler,
        {
          prompt: randomPrompt(model, 3 + index * 60, index + 2),
          maxTokens: 10 + index * 9,
          numSamples: 1 + (index % 3),
          seed: index,
        },
        index % 2 === 0 ? { adapter } : {},
      ),
    );
    const beside = await sample(sampler, request, { adapter });
    await Promise.all(others);
    const again = await sample(sampler, request, { adapter });
    expect(beside.samples).toEqual(alone.samples);
    expect(again.samples).toEqual(alone.samples);
    expect(again.promptCacheHitTokens).toBe(promptBlock);
  });

  it("draws different samples within a group, and the same for the same seed", async () => {
    const request = { prompt: randomPrompt(model, 12, 9), maxTokens: 16, seed: 7, numSamples: 8 };
    const first = await sample(newSampler(model), request);
    const texts = new Set(first.samples.map(({ tokens }) => tokens.join()));
    expect(texts.size).toBe(8);
    const fewer = await sample(newSampler(model), { ...request, numSamples: 2 });
    expect(fewer.samples).toEqual(first.samples.slice(0, 2));
  });

  it("reuses blocks of a prompt that another request has read", async () => {
    const sampler = newSampler(model);
    const shared = randomPrompt(model, 3 * promptBlock, 20);
    const prompt = Int32Array.of(...shared, 1, 2, 3);
    const options = { maxTokens: 5, seed: 1 };
    const first = await sample(sampler, { prompt: shared, ...options });
    const second = await sample(sampler, { prompt, ...options });
    const other = await sample(sampler, { prompt, ...options }, { adapter });
    const fresh = await sample(newSampler(model), { prompt, ...options });
    expect(first.promptCacheHitTokens).toBe(0);
    expect(second.promptCacheHitTokens).toBe(3 * promptBlock);
    expect(other.promptCacheHitTokens).toBe(0);
    expect(second.samples).toEqual(fresh.samples);
  });

  it("ends at a stop token, and includes it in the sample", async () => {
    const { prompt, tokens } = expected.base_greedy;
    const stop = at(tokens, 3);
    const { samples } = await sample(newSampler(model), {
      prompt,
      maxTokens: 50,
      temperature: 0,
      stopTokens: [stop],
    });
    const end = tokens.indexOf(stop) + 1;
    expect([...at(samples, 0).tokens]).toEqual(tokens.slice(0, end));
    expect(at(samples, 0).stopReason).toBe("stop");
  });

  it("ends at a stop string that spans tokens", async () => {
    const { prompt, tokens } = expected.base_greedy;
    const encoder = new TextEncoder();
    const text = { bytesOf: (token: number) => encoder.encode(`<${token}>`) };
    const stop = `${tokens[2]}><${String(tokens[3]).slice(0, 1)}`;
    const textUpTo = (end: number) =>
      tokens
        .slice(0, end)
        .map((token) => `<${token}>`)
        .join("");
    const end = tokens.findIndex((_, index) => textUpTo(index + 1).includes(stop)) + 1;
    const { samples } = await sample(
      newSampler(model),
      { prompt, maxTokens: 50, temperature: 0, stopStrings: [stop] },
      { text },
    );
    expect([...at(samples, 0).tokens]).toEqual(tokens.slice(0, end));
    expect(at(samples, 0).stopReason).toBe("stop");
  });

  it("stops at the end of the model's context", async () => {
    const prompt = randomPrompt(model, model.config.contextLength - 4, 3);
    const { samples } = await sample(newSampler(model), { prompt, maxTokens: 100, seed: 1 });
    expect(at(samples, 0).tokens.length).toBe(4);
    expect(at(samples, 0).stopReason).toBe("length");
  });

  it("reports every token as it comes", async () => {
    const events: string[] = [];
    const { samples } = await sample(
      newSampler(model),
      { prompt: [1, 2, 3], maxTokens: 6, numSamples: 2, seed: 3 },
      {
        onTokens: (tokens) => {
          for (const { sampleIndex, token } of tokens) events.push(`${sampleIndex}:${token}`);
        },
      },
    );
    for (const [index, { tokens }] of samples.entries()) {
      const own = events.filter((event) => event.startsWith(`${index}:`));
      expect(own).toEqual([...tokens].map((token) => `${index}:${token}`));
    }
  });

  it("cancels a request without affecting others", async () => {
    const sampler = newSampler(model);
    const controller = new AbortController();
    const cancelled = sample(
      sampler,
      { prompt: [1, 2, 3], maxTokens: 400, seed: 1 },
      {
        signal: controller.signal,
        onTokens: () => controller.abort(new Error("enough")),
      },
    );
    const kept = sample(sampler, { prompt: [4, 5], maxTokens: 20, seed: 2 });
    await expect(cancelled).rejects.toThrow("enough");
    expect((await kept).samples[0]?.tokens.length).toBe(20);
  });

  it("fails only the request that cannot start its samples", async () => {
    const sampler = newSampler(model);
    const constraint = new Constraint(
      { rules: [{ kind: "text", text: "a" }], start: 0 },
      table,
      () => {
        throw new Error("never asked");
      },
    );
    constraint.begin = () => {
      throw new Error("cannot begin");
    };
    const failing = sample(sampler, { prompt: [1, 2, 3], maxTokens: 4 }, { constraint });
    const kept = sample(sampler, { prompt: [4, 5], maxTokens: 20, seed: 2 });
    await expect(failing).rejects.toThrow("cannot begin");
    expect((await kept).samples[0]?.tokens.length).toBe(20);
  });

  it("completes more samples than fit in memory at once", async () => {
    const tokensAtOnce = 2 * 512;
    const { layers, kvHeads, headDim } = model.config;
    const kvBytes = tokensAtOnce * layers * 2 * kvHeads * headDim * 4;
    const request = { prompt: [5, 6, 7], maxTokens: 8, seed: 11, numSamples: 9 };
    const tight = await sample(newSampler(model, { kvBytes }), request);
    const roomy = await sample(newSampler(model), request);
    expect(tight.samples).toEqual(roomy.samples);
  });

  it("refuses a request that can never fit", async () => {
    const sampler = newSampler(model, { kvBytes: 1000 });
    await expect(sample(sampler, { prompt: [1], maxTokens: 5 })).rejects.toThrow("memoryBytes");
  });
});
