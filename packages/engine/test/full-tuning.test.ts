import { Engine, type BaseModel, type FullTuning, type NamedTensors } from "@tinker-ts/engine";
import { expectedTensors } from "@tinker-ts/hub/weights";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countingDatum, raggedData } from "./support/engine-data.js";
import { fixture } from "./support/fixtures.js";

const crossEntropy = { lossFn: "cross_entropy" } as const;
// The first one has token 0, which some models embed as zeros: no slope can be measured there.
const data = [...raggedData(5, 30).slice(1), countingDatum(20, 12)];

function tensor(tensors: NamedTensors, name: string) {
  const found = tensors.get(name);
  if (found === undefined) throw new Error(`no tensor ${name}`);
  return found;
}

/** Compares a gradient with the change of the loss along it. */
async function expectSlope(
  model: BaseModel,
  tuning: FullTuning,
  gradient: NamedTensors,
  name: string,
  distance = 1e-2,
): Promise<void> {
  const { tensors } = await tuning.exportState();
  const slope = tensor(gradient, name).data;
  const norm = Math.sqrt(slope.reduce((sum, value) => sum + value * value, 0));
  const other = await model.createFullTuning();
  const lossAt = async (step: number): Promise<number> => {
    const original = tensor(tensors, name);
    const moved = original.data.map((value, i) => value + (step * (slope[i] ?? 0)) / norm);
    const changed = new Map(tensors).set(name, { ...original, data: moved });
    await other.importState({ tensors: changed });
    const { metrics } = await other.forward(data, crossEntropy);
    return metrics["loss:sum"] ?? NaN;
  };
  const numeric = ((await lossAt(distance)) - (await lossAt(-distance))) / (2 * distance);
  expect(numeric / norm, name).toBeCloseTo(1, 1);
}

// Families with weights or factors that the others do not have.
const families = ["qwen3", "gemma3", "olmo2", "granite", "phi3"];

describe.each(families)("training all weights of %s", (family) => {
  let engine: Engine;
  let model: BaseModel;
  let tuning: FullTuning;
  let gradient: NamedTensors;

  beforeAll(async () => {
    engine = await Engine.create({ threads: 2 });
    model = await engine.loadModel(fixture(`${family}/model`));
    tuning = await model.createFullTuning();
    await tuning.forwardBackward(data, crossEntropy);
    gradient = await tuning.exportGradient();
  });
  afterAll(() => engine.close());

  it("gives the gradient that a new adapter's second factors project", async () => {
    // With B = 0 the adapter changes nothing, and the gradient of B is scale * (gradient of W) A^T.
    const rank = 4;
    const adapter = await model.createAdapter({ rank, alpha: 8, seed: 1 });
    const { tensors } = await adapter.exportState();
    await adapter.forwardBackward(data, crossEntropy);
    const ofAdapter = await adapter.exportGradient();
    for (const [name, { data: a, shape }] of tensors) {
      if (!name.includes("lora_A")) continue;
      const module = name.slice("base_model.model.".length, -".lora_A.weight".length);
      const [, inputs = 0] = shape;
      // A tied unembedding shares its gradient with the embedding.
      if (module === "lm_head" && model.config.tiedEmbeddings) continue;
      const ofWeight = tensor(gradient, `${module}.weight`).data;
      const ofB = tensor(ofAdapter, name.replace("lora_A", "lora_B")).data;
      const largest = ofB.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
      for (let row = 0; row < ofB.length / rank; row += 7) {
        let projected = 0;
        for (let i = 0; i < inputs; i++) {
          projected += (ofWeight[row * inputs + i] ?? 0) * (a[i] ?? 0);
        }
        expect(Math.abs(projected * 2 - (ofB[row * rank] ?? NaN)) / largest).toBeLessThan(1e-4);
      }
    }
  });

  it.each([
    "model.embed_tokens.weight",
    "model.norm.weight",
    "model.layers.1.post_attention_layernorm.weight",
  ])("gives the slope of the loss along %s", async (name) => {
    await expectSlope(model, tuning, gradient, name);
  });

  it("learns, and the result can be sampled as a new model", async () => {
    const start = 40;
    const taught = [countingDatum(start, 12)];
    const student = await model.createFullTuning();
    for (let step = 0; step < 40; step++) {
      await student.forwardBackward(taught, crossEntropy);
      await student.optimStep({ learningRate: 3e-3 });
    }
    const { tensors } = await student.exportState();
    const result = await engine.createModel(model.config, { tensors });
    const { samples } = await result.sample({ prompt: [start], maxTokens: 10, temperature: 0 });
    expect([...(samples[0]?.tokens ?? [])]).toEqual(
      Array.from({ length: 10 }, (_, index) => start + index + 1),
    );
  });
});

it.each([
  [
    "qwen3_5",
    ["in_proj_qkv.weight", "conv1d.weight", "A_log", "dt_bias", "norm.weight"],
    "linear_attn",
  ],
  ["lfm2", ["in_proj.weight", "conv.weight", "out_proj.weight"], "conv"],
  ["granite_hybrid", ["in_proj.weight", "conv1d.bias", "A_log", "dt_bias", "D"], "mamba"],
])("trains all weights of the mixers of %s", async (family, names, mixer) => {
  await using engine = await Engine.create({ threads: 2 });
  const model = await engine.loadModel(fixture(`${family}/model`));
  const tuning = await model.createFullTuning();
  await tuning.forwardBackward(data, crossEntropy);
  const gradient = await tuning.exportGradient();
  expect([...gradient.keys()].toSorted()).toEqual(
    [...expectedTensors(model.config).keys()].toSorted(),
  );
  for (const name of names) {
    // The norm inside the delta rule bends the loss at first tokens.
    await expectSlope(model, tuning, gradient, `model.layers.0.${mixer}.${name}`, 1e-3);
  }
});

describe("a new model", () => {
  it("is fixed by its seed, and ties its embeddings if configured", async () => {
    const engine = await Engine.create({ threads: 2 });
    const { config } = await engine.loadModel(fixture("qwen3/model"));
    const tied = { ...config, tiedEmbeddings: true };
    const states = [];
    for (const seed of [1, 1, 2]) {
      const model = await engine.createModel(tied, { seed });
      const tuning = await model.createFullTuning();
      const { metrics } = await tuning.forwardBackward(data, crossEntropy);
      const perToken = (metrics["loss:sum"] ?? NaN) / (metrics["targets:sum"] ?? NaN);
      expect(perToken).toBeCloseTo(Math.log(config.vocabSize), 0);
      await tuning.optimStep({ learningRate: 1e-3 });
      states.push(await tuning.exportState());
    }
    expect(states[1]).toEqual(states[0]);
    expect(states[2]).not.toEqual(states[0]);
    expect(states[0]?.tensors.has("lm_head.weight")).toBe(false);
    await engine.close();
  });
});
