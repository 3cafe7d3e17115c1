import { readFileSync } from "node:fs";
import { Engine } from "@tinker-ts/engine";
import { expect, it } from "vitest";
import { readTensors } from "./support/fixture-model.js";
import { fixture } from "./support/fixtures.js";

interface FamilyExpected {
  readonly rank: number;
  readonly alpha: number;
  readonly data: readonly {
    readonly tokens: readonly number[];
    readonly target_tokens: readonly number[];
    readonly weights: readonly number[];
  }[];
  readonly base_logprobs: readonly (readonly number[])[];
  readonly lora_logprobs: readonly (readonly number[])[];
  readonly loss_sum: number;
}

function largestDifference(
  outputs: readonly { readonly logprobs: Float32Array }[],
  expected: readonly (readonly number[])[],
): number {
  const differences = expected.flatMap((logprobs, datum) =>
    logprobs.map((value, i) => Math.abs(value - (outputs[datum]?.logprobs[i] ?? NaN))),
  );
  return Math.max(...differences);
}

const biasedLlama = { qkvBias: true, outputBias: true, mlpBias: true, headDim: 6, kvHeads: 1 };

it.each([
  ["a Qwen2 with tied embeddings", "qwen2", { qkvBias: true, tiedEmbeddings: true, qkNorm: false }],
  ["a Llama with all biases and a head size of its own", "llama-biased", biasedLlama],
])("agrees with PyTorch on %s", async (_, family, config) => {
  const text = readFileSync(fixture(`${family}/expected.json`), "utf8");
  const expected: FamilyExpected = JSON.parse(text);
  await using engine = await Engine.create({ threads: 2 });
  const model = await engine.loadModel(fixture(`${family}/model`));
  expect(model.config).toMatchObject(config);
  const adapter = await model.createAdapter({ rank: expected.rank, alpha: expected.alpha });
  const data = expected.data.map(({ tokens, target_tokens, weights }) => ({
    tokens,
    inputs: {
      target_tokens: { data: target_tokens, shape: [tokens.length] },
      weights: { data: weights, shape: [tokens.length] },
    },
  }));
  const base = await adapter.forward(data, { lossFn: "cross_entropy" });
  expect(largestDifference(base.outputs, expected.base_logprobs)).toBeLessThan(1e-4);

  await adapter.importState({ tensors: await readTensors(`${family}/adapter.safetensors`) });
  const adapted = await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
  expect(largestDifference(adapted.outputs, expected.lora_logprobs)).toBeLessThan(1e-4);
  expect(adapted.metrics["loss:sum"]).toBeCloseTo(expected.loss_sum, 3);
  const gradient = await adapter.exportGradient();
  for (const [name, want] of await readTensors(`${family}/grads_cross_entropy.safetensors`)) {
    const own = gradient.get(name)?.data ?? new Float32Array();
    const largest = want.data.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
    for (const [i, value] of want.data.entries()) {
      expect(Math.abs(value - (own[i] ?? NaN)) / largest, name).toBeLessThan(1e-3);
    }
  }

  const snapshot = await adapter.snapshot();
  const [first] = data;
  const prompt = first?.tokens ?? [];
  const { samples, promptLogprobs } = await model.sample({
    prompt,
    maxTokens: 1,
    adapter: snapshot,
    promptLogprobs: true,
  });
  const continued = [...prompt, ...(samples[0]?.tokens ?? [])];
  const scored = await adapter.forward(
    [
      {
        tokens: prompt,
        inputs: {
          target_tokens: { data: continued.slice(1), shape: [prompt.length] },
          weights: { data: prompt.map(() => 1), shape: [prompt.length] },
        },
      },
    ],
    { lossFn: "cross_entropy" },
  );
  const sampled = [...(promptLogprobs ?? []).slice(1), ...(samples[0]?.logprobs ?? [])];
  expect(largestDifference(scored.outputs, [sampled])).toBeLessThan(1e-4);
});
