import { readFile } from "node:fs/promises";
import path from "node:path";
import {
  Engine,
  loadAdapter,
  mergeAdapter,
  readAdapter,
  saveAdapter,
  type Adapter,
  type BaseModel,
} from "@tinker-ts/engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { raggedData } from "./support/engine-data.js";
import { families, fixtureData, readExpected } from "./support/fixture-model.js";
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

  it.each(families)("save, load and merge adapters of %s", async (family) => {
    const expected = readExpected(family);
    const data = fixtureData(expected, "cross_entropy");
    const base = fixture(`${family}/model`);
    const own = await engine.loadModel(base);
    const differenceOf = async (adapter: Adapter) => {
      const { outputs } = await adapter.forward(data, crossEntropy);
      const differences = expected.lora_logprobs.flatMap((logprobs, index) =>
        logprobs.map((value, i) => Math.abs(value - (outputs[index]?.logprobs[i] ?? NaN))),
      );
      return Math.max(...differences);
    };
    const foreign = await loadAdapter(own, fixture(`${family}/adapter`));
    expect(await differenceOf(foreign)).toBeLessThan(1e-4);

    await saveAdapter(foreign, temporary(family));
    const targetsIn = async (folder: string) => {
      const text = await readFile(path.join(folder, "adapter_config.json"), "utf8");
      const config: { target_modules: string[] } = JSON.parse(text);
      return config.target_modules.toSorted();
    };
    expect(await targetsIn(temporary(family))).toEqual(
      await targetsIn(fixture(`${family}/adapter`)),
    );
    expect(await differenceOf(await loadAdapter(own, temporary(family)))).toBeLessThan(1e-4);

    const { config } = own;
    const adapter = await readAdapter(temporary(family), { config });
    await mergeAdapter({ base, adapter, output: temporary(`${family}-merged`) });
    const merged = await engine.loadModel(temporary(`${family}-merged`));
    expect(await differenceOf(await merged.createAdapter({ rank: 1 }))).toBeLessThan(1e-4);
    await own.unload();
    await merged.unload();
  });

  it.each(["qwen3_5", "qwen3_5_vl"] as const)(
    "load PEFT's adapter of fused matrices of %s for sampling, and merge it",
    async (family) => {
      const expected = readExpected(family);
      const base = fixture(`${family}/model`);
      const own = await engine.loadModel(base);
      const fused = await loadAdapter(own, fixture(`${family}/adapter_fused`), {
        forSampling: true,
      });
      const snapshot = await fused.snapshot();
      const adapter = await readAdapter(fixture(`${family}/adapter_fused`), own);
      await mergeAdapter({ base, adapter, output: temporary(`${family}-fused`) });
      const merged = await engine.loadModel(temporary(`${family}-fused`));
      for (const [index, { tokens, target_tokens: targets }] of expected.data.entries()) {
        const prompt = [...tokens, ...targets.slice(-1)];
        const request = { prompt, maxTokens: 1, promptLogprobs: true };
        const results = [
          await own.sample({ ...request, adapter: snapshot }),
          await merged.sample(request),
        ];
        for (const { promptLogprobs } of results) {
          for (const [i, want] of (expected.fused_logprobs?.[index] ?? [NaN]).entries()) {
            expect(Math.abs((promptLogprobs?.[i + 1] ?? NaN) - want)).toBeLessThan(1e-4);
          }
        }
      }
      await own.unload();
      await merged.unload();
    },
  );

  it("with fused matrices are refused for training, with the reason", async () => {
    const own = await engine.loadModel(fixture("qwen3_5/model"));
    const folder = fixture("qwen3_5/adapter_fused");
    await expect(loadAdapter(own, folder)).rejects.toMatchObject({
      code: "sampling_only",
      message: expect.stringMatching(/one adapter on in_proj_qkv.*different first factors/),
    });
    const adapter = await loadAdapter(own, folder, { forSampling: true });
    const data = fixtureData(readExpected("qwen3_5"), "cross_entropy");
    await expect(adapter.forwardBackward(data, crossEntropy)).rejects.toThrow("sampling alone");
    await expect(adapter.optimStep({ learningRate: 1e-3 })).rejects.toThrow("sampling alone");
    await own.unload();
  });

  it("report a missing optimizer", async () => {
    const loading = loadAdapter(model, fixture("qwen3/adapter"), { optimizer: true });
    await expect(loading).rejects.toThrow("has no optimizer");
  });
});
