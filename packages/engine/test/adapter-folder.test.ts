import { Engine, loadAdapter, saveAdapter, type BaseModel } from "@tinker-ts/engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { raggedData } from "./support/engine-data.js";
import { readExpected } from "./support/fixture-model.js";
import { fixture } from "./support/fixtures.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;

describe("adapter folders", () => {
  const temporary = useTemporaryFolder();
  let engine: Engine;
  let model: BaseModel;

  beforeAll(async () => {
    engine = await Engine.create({ threads: 2 });
    model = await engine.loadModel(fixture("qwen3/model"));
  });
  afterAll(() => engine.close());

  it("continue training bit for bit, optimizer included", async () => {
    const adapter = await model.createAdapter({ rank: 6, alpha: 12, seed: 4, trainMlp: false });
    const step = async (one: typeof adapter) => {
      await one.forwardBackward(raggedData(5, 40), crossEntropy);
      await one.optimStep({ learningRate: 1e-3 });
    };
    await step(adapter);
    await saveAdapter(adapter, temporary("saved"), { optimizer: true, baseModel: "fixture" });
    const loaded = await loadAdapter(model, temporary("saved"), { optimizer: true });
    expect(loaded).toMatchObject({ rank: 6, alpha: 12, seed: 4, trainMlp: false, trainAttn: true });
    for (const one of [adapter, loaded]) await step(one);
    expect(await loaded.exportState({ optimizer: true })).toEqual(
      await adapter.exportState({ optimizer: true }),
    );
  });

  it("load adapters from elsewhere", async () => {
    const expected = readExpected("qwen3");
    const adapter = await loadAdapter(model, fixture("qwen3/adapter"));
    const data = expected.data.map(({ tokens, target_tokens, weights }) => ({
      tokens,
      inputs: {
        target_tokens: { data: target_tokens, shape: [tokens.length] },
        weights: { data: weights, shape: [tokens.length] },
      },
    }));
    const { outputs } = await adapter.forward(data, crossEntropy);
    expect(outputs[0]?.logprobs[3]).toBeCloseTo(expected.lora_logprobs[0]?.[3] ?? NaN, 4);
  });

  it("say when there is no optimizer to load", async () => {
    const loading = loadAdapter(model, fixture("qwen3/adapter"), { optimizer: true });
    await expect(loading).rejects.toThrow("has no optimizer");
  });
});
