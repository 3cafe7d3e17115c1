import { Engine, type Adapter, type BaseModel } from "@tinker-ts/engine";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RandomStream } from "../src/util/random.js";
import { fixture } from "./support/fixtures.js";

const vocabSize = 310;
const prompt = randomTokens(1, 200);
let engine: Engine;
let model: BaseModel;
/** Untrained: it gives the results of the base model. */
let plain: Adapter;

beforeAll(async () => {
  engine = await Engine.create({ threads: 2 });
  model = await engine.loadModel(fixture("qwen3/model"));
  plain = await model.createAdapter({ rank: 2 });
});
afterAll(() => engine.close());

function randomTokens(seed: number, count: number): number[] {
  const random = new RandomStream(seed);
  return Array.from({ length: count }, () => Math.floor(random.next() * vocabSize));
}

/** Log-probabilities of one token in a plain pass, at every position but the first. */
async function passLogprobs(tokens: readonly number[], targets: readonly number[]) {
  const read = tokens.slice(0, -1);
  const inputs = { target_tokens: { data: [...targets], shape: [read.length] } };
  const { outputs } = await plain.forward([{ tokens: read, inputs }], { lossFn: "cross_entropy" });
  return outputs[0]!.logprobs;
}

function expectClose(actual: ArrayLike<number>, expected: ArrayLike<number>): void {
  expect(actual.length).toBe(expected.length);
  const differences = Array.from(actual, (value, index) => Math.abs(value - expected[index]!));
  expect(Math.max(...differences)).toBeLessThan(1e-5);
}

function column(rows: ArrayLike<number>, index: number, width: number): number[] {
  return Array.from({ length: rows.length / width }, (_, row) => rows[row * width + index]!);
}

it("scores requested tokens at each position like a plain pass", async () => {
  const width = 3;
  const tokens = Int32Array.from(randomTokens(2, (prompt.length - 1) * width));
  const rowStarts = Int32Array.from(prompt, (_, row) => row * width);
  const request = { prompt, maxTokens: 1, promptTargets: { rowStarts, tokens } };
  const { targetPromptLogprobs: scores = [], promptLogprobs } = await model.sample(request);
  for (let index = 0; index < width; index++) {
    const expected = await passLogprobs(prompt, column(tokens, index, width));
    expectClose(column(scores, index, width), expected);
  }
  expect(promptLogprobs).toBeUndefined();
});

it("scores rows of different lengths, and nothing for -1 or without requested tokens", async () => {
  const tokens = Int32Array.of(7, -1, 9, 4);
  // One token at position 100, three at position 150.
  const rowStarts = Int32Array.from(prompt, (_, row) => (row < 100 ? 0 : row < 150 ? 1 : 4));
  const { targetPromptLogprobs: scores = [] } = await model.sample({
    prompt,
    maxTokens: 1,
    promptTargets: { rowStarts, tokens },
  });
  const expected = [];
  for (const [token, position] of [
    [7, 100],
    [9, 150],
    [4, 150],
  ] as const) {
    const everywhere = await passLogprobs(
      prompt,
      prompt.slice(1).map(() => token),
    );
    expected.push(everywhere[position - 1]!);
  }
  expectClose(scores, [expected[0]!, 0, expected[1]!, expected[2]!]);
});

it("gives the most likely tokens for every sampled token like a plain pass", async () => {
  const request = { prompt: prompt.slice(0, 20), maxTokens: 10, seed: 4 };
  const whole = (await model.sample({ ...request, topLogprobs: vocabSize })).samples[0]!;
  const some = (await model.sample({ ...request, topLogprobs: 3 })).samples[0]!;
  expect(some.topLogprobs).toEqual(whole.topLogprobs!.map((row) => row.slice(0, 3)));
  const sequence = [...request.prompt, ...some.tokens];
  for (let rank = 0; rank < 3; rank++) {
    const tops = some.topLogprobs!.map((row) => row[rank]!);
    const targets = [...request.prompt.slice(1), ...tops.map(({ token }) => token)];
    const expected = await passLogprobs(sequence, targets);
    expectClose(
      tops.map(({ logprob }) => logprob),
      expected.slice(request.prompt.length - 1),
    );
  }
  for (const row of whole.topLogprobs!) {
    const logprobs = row.map(({ logprob }) => logprob);
    expect(logprobs).toEqual(logprobs.toSorted((a, b) => b - a));
    expect(logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 4);
  }
});

it("draws alternatives at every position but the first, fixed by the seed", async () => {
  const width = 4;
  const request = { prompt, maxTokens: 1, seed: 3, promptAlternatives: width };
  const { promptAlternatives: drawn } = await model.sample(request);
  expect(drawn!.tokens.length).toBe((prompt.length - 1) * width);
  for (let index = 0; index < width; index++) {
    const expected = await passLogprobs(prompt, column(drawn!.tokens, index, width));
    expectClose(column(drawn!.logprobs, index, width), expected);
  }
  expect((await model.sample(request)).promptAlternatives).toEqual(drawn);
  const other = await model.sample({ ...request, seed: 4 });
  expect(other.promptAlternatives!.tokens).not.toEqual(drawn!.tokens);
  const beside = await model.sample({ ...request, promptLogprobs: true, promptLogprobsLastN: 2 });
  expect(beside.promptAlternatives).toEqual(drawn);
});

it.each([1, 0.5])("draws alternatives at temperature %d", async (temperature) => {
  const promptAlternatives = 1024;
  const request = { prompt: prompt.slice(0, 2), maxTokens: 1, seed: 5 };
  const { promptAlternatives: drawn } = await model.sample({
    ...request,
    temperature,
    promptAlternatives,
  });
  const logprobs = Array.from(
    { length: vocabSize },
    async (_, token) => (await passLogprobs(request.prompt, [token]))[0]!,
  );
  const weights = (await Promise.all(logprobs)).map((logprob) => Math.exp(logprob / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  // The squared deviation of each of ten parts of the vocabulary, in units of what chance makes.
  let deviation = 0;
  for (let part = 0; part < 10; part++) {
    const isInPart = (token: number): boolean => token % 10 === part;
    const share = weights.reduce((sum, weight, id) => sum + (isInPart(id) ? weight : 0), 0) / total;
    const expected = share * promptAlternatives;
    deviation += (drawn!.tokens.filter(isInPart).length - expected) ** 2 / expected;
  }
  // More than 27.9 comes by chance once in a thousand draws, and this draw is always the same.
  expect(deviation).toBeLessThan(27.9);
});

it("draws independently at each position", async () => {
  // So hot that every token is as likely as any other, at all positions.
  const request = { prompt, maxTokens: 1, seed: 6, temperature: 1000, promptAlternatives: 1 };
  const { promptAlternatives: drawn } = await model.sample(request);
  expect(new Set(drawn!.tokens).size).toBeGreaterThan(100);
});

it("draws the most likely token at temperature 0", async () => {
  const request = { prompt, maxTokens: 1, temperature: 0, promptAlternatives: 2 };
  const drawn = await model.sample({ ...request, topkPromptLogprobs: 1 });
  const best = drawn
    .topkPromptLogprobs!.slice(1)
    .flatMap((row) => [row![0]!.token, row![0]!.token]);
  expect([...drawn.promptAlternatives!.tokens]).toEqual(best);
});

it("scores only the last positions, and reuses cached blocks before them", async () => {
  const request = { prompt, maxTokens: 1, seed: 1, promptLogprobs: true, topkPromptLogprobs: 2 };
  const whole = await model.sample(request);
  const last = await model.sample({ ...request, promptLogprobsLastN: 5 });
  expect(last.promptCacheHitTokens).toBeGreaterThan(0);
  expect(whole.promptCacheHitTokens).toBe(0);
  const first = prompt.length - 5;
  expect(last.promptLogprobs!.slice(0, first).every(Number.isNaN)).toBe(true);
  expect(last.promptLogprobs!.slice(first)).toEqual(whole.promptLogprobs!.slice(first));
  expect(last.topkPromptLogprobs).toEqual(
    whole.topkPromptLogprobs!.map((row, position) => (position < first ? null : row)),
  );
  const all = await model.sample({ ...request, promptLogprobsLastN: prompt.length - 1 });
  expect(all).toEqual(whole);
});

it("gives the same scores at the edges of blocks as without a cache", async () => {
  const whole = await model.sample({ prompt, maxTokens: 1, promptLogprobs: true });
  for (let position = 60; position < 70; position++) {
    const rowStarts = Int32Array.from(prompt, (_, row) => (row < position ? 0 : 1));
    const tokens = Int32Array.of(prompt[position]!);
    const { targetPromptLogprobs } = await model.sample({
      prompt,
      maxTokens: 1,
      promptTargets: { rowStarts, tokens },
    });
    expect(targetPromptLogprobs).toEqual(whole.promptLogprobs!.slice(position, position + 1));
  }
});

it("gives the same scores in any batch", async () => {
  const rowStarts = Int32Array.from(prompt, (_, row) => row);
  const tokens = Int32Array.from(randomTokens(6, prompt.length - 1));
  const request = {
    prompt,
    maxTokens: 4,
    seed: 7,
    topLogprobs: 3,
    promptTargets: { rowStarts, tokens },
    promptAlternatives: 2,
  };
  const alone = await model.sample(request);
  const others = Array.from({ length: 3 }, (_, index) =>
    model.sample({
      prompt: randomTokens(index + 8, 90),
      maxTokens: 30,
      seed: index,
      numSamples: 3,
    }),
  );
  expect(await model.sample(request)).toEqual(alone);
  await Promise.all(others);
});

it.each([
  [{ promptLogprobsLastN: 1 }, "promptLogprobs is false"],
  [{ promptLogprobs: true, promptLogprobsLastN: 3 }, "promptLogprobsLastN is 3"],
  [{ promptLogprobs: true, promptLogprobsLastN: 0 }, "promptLogprobsLastN is 0"],
  [{ promptAlternatives: 1025 }, "promptAlternatives is 1025"],
  [{ promptTargets: { rowStarts: Int32Array.of(0, 1), tokens: Int32Array.of(1) } }, "rowStarts"],
  [
    { promptTargets: { rowStarts: Int32Array.of(0, 1, 1), tokens: Int32Array.of(vocabSize) } },
    "promptTargets.tokens is 310",
  ],
])("refuses %j", async (more, text) => {
  await expect(model.sample({ prompt: [1, 2, 3], maxTokens: 1, ...more })).rejects.toThrow(text);
});
