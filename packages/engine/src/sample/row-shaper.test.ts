import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadFixtureModel } from "../../test/support/fixture-model.js";
import { Constraints } from "../constrain/constraints.js";
import type { Grammar } from "../constrain/grammar.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import { at } from "../util/arrays.js";
import { FairTurns } from "../util/turns.js";
import { noAdapter } from "./adapter-set.js";
import { checkSampleOptions, type SampleOptions } from "./request.js";
import type { SampleCall, SampleResult } from "./sequence.js";
import { Sampler } from "./sampler.js";

let model: ModelRuntime;
let sampler: Sampler;
beforeAll(async () => {
  model = await loadFixtureModel("qwen3", 1);
  sampler = new Sampler(model, { kvBytes: 1e8, prefixBytes: 1e8, maxRows: 32 }, new FairTurns());
});
afterAll(() => model.release());

const prompt = [5, 9, 77, 12];

function sample(
  options: Partial<SampleOptions>,
  more: Partial<SampleCall> = {},
): Promise<SampleResult> {
  const full = { prompt, maxTokens: 8, seed: 3, ...options };
  const checked = checkSampleOptions(model.config, full);
  return sampler.sample({ options: checked, adapter: noAdapter(), ...more });
}

async function tokensOf(options: Partial<SampleOptions>): Promise<number[]> {
  return [...at((await sample(options)).samples, 0).tokens];
}

/** Logits of the token after a text, up to a constant. */
async function logitsAfter(text: readonly number[]): Promise<Map<number, number>> {
  const { topkPromptLogprobs } = await sample({
    prompt: [...text, 0],
    maxTokens: 0,
    topkPromptLogprobs: model.config.vocabSize,
  });
  return new Map(topkPromptLogprobs?.at(-1)?.map(({ token, logprob }) => [token, logprob]));
}

function bestOf(logits: ReadonlyMap<number, number>): number {
  return [...logits].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}

describe("changing the distribution", () => {
  it("adds a bias to a token's logit, so that it is always or never drawn", async () => {
    const [first = 0] = await tokensOf({ temperature: 0 });
    expect(
      await tokensOf({ temperature: 0, maxTokens: 3, logitBias: new Map([[44, 100]]) }),
    ).toEqual([44, 44, 44]);
    const without = await tokensOf({ maxTokens: 60, logitBias: new Map([[first, -100]]) });
    expect(without).not.toContain(first);
  });

  it.each([
    { frequencyPenalty: 1.5, presencePenalty: 0 },
    { frequencyPenalty: 0, presencePenalty: 1.5 },
    { frequencyPenalty: -0.5, presencePenalty: 0.7 },
  ])("applies penalties to generated tokens only: %o", async (penalties) => {
    const tokens = await tokensOf({ temperature: 0, maxTokens: 12, ...penalties });
    for (let index = 0; index < tokens.length; index++) {
      const before = tokens.slice(0, index);
      const logits = await logitsAfter([...prompt, ...before]);
      for (const token of new Set(before)) {
        const count = before.filter((one) => one === token).length;
        const logit = logits.get(token) ?? NaN;
        const { frequencyPenalty, presencePenalty } = penalties;
        logits.set(token, logit - frequencyPenalty * count - presencePenalty);
      }
      expect(tokens[index]).toBe(bestOf(logits));
    }
  });

  it("penalizes repetition of prompt tokens too", async () => {
    const usual = at(await tokensOf({ temperature: 0 }), 0);
    const text = [...prompt, usual];
    const [first = 0] = await tokensOf({ prompt: text, temperature: 0, repetitionPenalty: 50 });
    expect(text).not.toContain(first);
  });

  it("draws the most likely token when all less likely tokens are excluded", async () => {
    const greedy = await tokensOf({ temperature: 0 });
    expect(await tokensOf({ minP: 1 })).toEqual(greedy);
    expect(await tokensOf({ minP: 1, logitBias: new Map([[1, 0]]) })).toEqual(greedy);
    expect(await tokensOf({ minP: 1e-9 })).toEqual(await tokensOf({}));
  });

  it("does not stop before the minimum length", async () => {
    const first = at(await tokensOf({ temperature: 0 }), 0);
    const options = { temperature: 0, stopTokens: [first] };
    expect(await tokensOf(options)).toEqual([first]);
    const { samples } = await sample({ ...options, minTokens: 3 });
    expect([...at(samples, 0).tokens].slice(0, 2)).not.toContain(first);
    expect(at(samples, 0).tokens.length).toBeGreaterThanOrEqual(3);
  });
});

describe("reporting alternatives", () => {
  it("gives the most likely tokens and the requested ones, streamed and not", async () => {
    const events: unknown[] = [];
    const { samples } = await sample(
      { topLogprobs: 3, logprobTokens: [7], maxTokens: 4, temperature: 0 },
      { onTokens: (some) => events.push(...some.map(({ top }) => top)) },
    );
    const { topLogprobs, tokens, logprobs } = at(samples, 0);
    expect(events).toEqual(topLogprobs);
    for (const [index, top] of (topLogprobs ?? []).entries()) {
      expect(at(top, 0)).toEqual({ token: tokens[index], logprob: logprobs[index] });
      const values = top.slice(0, 3).map(({ logprob }) => logprob);
      expect(values).toEqual(values.toSorted((a, b) => b - a));
      expect(top.some(({ token }) => token === 7)).toBe(true);
    }
    expect(topLogprobs).toHaveLength(4);
  });

  it("gives raw values at any temperature, and leaves processed ones unchanged", async () => {
    const raw = at((await sample({ temperature: 0.4, logprobsMode: "raw" })).samples, 0);
    const processed = at((await sample({ temperature: 0.4 })).samples, 0);
    expect(raw.tokens).toEqual(processed.tokens);
    const whole = [...prompt, ...raw.tokens];
    const { promptLogprobs } = await sample({ prompt: whole, maxTokens: 0, promptLogprobs: true });
    for (const [index, logprob] of raw.logprobs.entries()) {
      expect(logprob).toBeCloseTo(at(promptLogprobs ?? [], prompt.length + index), 4);
    }
    expect(raw.logprobs).not.toEqual(processed.logprobs);
  });

  it("reports the model's own log-probabilities despite exclusions", async () => {
    const { samples } = await sample({ maxTokens: 1, logitBias: new Map([[44, 100]]) });
    const logits = await logitsAfter(prompt);
    expect(at(at(samples, 0).logprobs, 0)).toBeCloseTo(logits.get(44) ?? NaN, 4);
  });
});

describe("following a constraint", () => {
  /** Token n is the letter a + n, up to z; the others are not text. */
  const bytesOf = (token: number): Uint8Array =>
    token < 26 ? Uint8Array.of(97 + token) : new Uint8Array();
  const grammar: Grammar = {
    rules: [
      { kind: "byte", ranges: [[97, 99]] },
      { kind: "repeat", item: 0, min: 2, max: 4 },
      { kind: "text", text: "z" },
      { kind: "sequence", items: [1, 2] },
    ],
    start: 3,
  };
  const constraint = () =>
    new Constraints(model.config.vocabSize, bytesOf, new Set()).get(grammar, []);
  const textOf = (tokens: Iterable<number>): string =>
    Array.from(tokens, (token) => (token < 26 ? String.fromCharCode(97 + token) : ".")).join("");

  it("gives only texts of the grammar, ended by a stop token", async () => {
    const end = 200;
    for (const temperature of [0, 1, 3]) {
      const { samples } = await sample(
        { numSamples: 8, maxTokens: 20, temperature, stopTokens: [end] },
        { constraint: constraint() },
      );
      for (const { tokens, stopReason } of samples) {
        expect(textOf(tokens)).toMatch(/^[abc]{2,4}z\.$/);
        expect([tokens.at(-1), stopReason]).toEqual([end, "stop"]);
      }
    }
  });

  it("ends without a stop token if there is none", async () => {
    const { samples } = await sample({ maxTokens: 20 }, { constraint: constraint() });
    expect(textOf(at(samples, 0).tokens)).toMatch(/^[abc]{2,4}z$/);
    expect(at(samples, 0).stopReason).toBe("stop");
  });

  it("does not affect other requests in the batch", async () => {
    const alone = await sample({ maxTokens: 20, numSamples: 3 });
    const [beside] = await Promise.all([
      sample({ maxTokens: 20, numSamples: 3 }),
      sample({ maxTokens: 20, seed: 9 }, { constraint: constraint() }),
    ]);
    expect(beside.samples).toEqual(alone.samples);
  });

  it("fails only its own request when the vocabulary cannot spell the grammar", async () => {
    const unsayable: Grammar = { rules: [{ kind: "text", text: "ab!" }], start: 0 };
    const demanded = new Constraints(model.config.vocabSize, bytesOf, new Set()).get(unsayable, []);
    const failing = sample({ maxTokens: 20 }, { constraint: demanded });
    const [outcome, other] = await Promise.allSettled([failing, sample({ maxTokens: 5 })]);
    expect(outcome).toMatchObject({ reason: { code: "constraint_dead_end" } });
    expect(other.status).toBe("fulfilled");
  });
});
