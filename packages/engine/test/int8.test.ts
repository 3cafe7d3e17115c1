import {
  embeddedModelFolder,
  Engine,
  openModelFolder,
  type BaseModel,
  type Datum,
  type LoadModelOptions,
  type NamedTensor,
} from "@tinker-ts/engine";
import { expectedTensors, parseModelConfig } from "@tinker-ts/hub/weights";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { families, fixtureData, readExpected, readTensors } from "./support/fixture-model.js";
import { RandomStream } from "../src/util/random.js";
import { fixture } from "./support/fixtures.js";
import { useTemporaryFolder } from "./support/temporary-folder.js";
import { writeTinyModel } from "../../hub/test/support/tiny-model.js";

const oneDigit = { weights: "int8", activations: "int8" } as const;
const sixteenBits = { weights: "int8" } as const;

const temporary = useTemporaryFolder();
let engine: Engine;
beforeAll(async () => {
  engine = await Engine.create({ threads: 2 });
});
afterAll(() => engine.close());

function seededRandom(seed: number): () => number {
  const stream = new RandomStream(seed);
  return () => stream.next();
}

/** An adapter of PyTorch's golden data on a model of some precision. */
async function loadedAdapter(family: (typeof families)[number], options: LoadModelOptions) {
  const { rank, alpha } = readExpected(family);
  const model = await engine.loadModel(fixture(`${family}/model`), options);
  const adapter = await model.createAdapter({ rank, alpha });
  const tensors = await readTensors(`${family}/adapter/adapter_model.safetensors`);
  await adapter.importState({ tensors });
  return { model, adapter };
}

/** Processors without instructions for sums of 8-bit products write activations in 7 bits, half as fine. */
function digitBitsOf({ precision }: BaseModel): 7 | 8 {
  return precision.weights === "int8" ? (precision.digitBits ?? 8) : 8;
}

type LoadedAdapter = Awaited<ReturnType<typeof loadedAdapter>>["adapter"];

async function logprobsAndGradient(adapter: LoadedAdapter, data: readonly Datum[]) {
  const { outputs } = await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
  const gradient = await adapter.exportGradient();
  return {
    logprobs: outputs.flatMap((output) => [...output.logprobs]),
    gradient: Float32Array.from(
      [...gradient.keys()].toSorted().flatMap((name) => [...(gradient.get(name)?.data ?? [])]),
    ),
  };
}

function meanDifference(left: readonly number[], right: readonly number[]): number {
  expect(left.length).toBe(right.length);
  return left.reduce((sum, value, i) => sum + Math.abs(value - (right[i] ?? NaN)), 0) / left.length;
}

function cosine(left: Float32Array, right: Float32Array): number {
  let [product, leftSquare, rightSquare] = [0, 0, 0];
  for (const [i, value] of left.entries()) {
    const other = right[i] ?? NaN;
    product += value * other;
    leftSquare += value * value;
    rightSquare += other * other;
  }
  return product / Math.sqrt(leftSquare * rightSquare);
}

/** Log-probabilities of read and drawn tokens by the trainer and by the sampler. */
async function sampledAndScored(
  model: BaseModel,
  adapter: LoadedAdapter,
  prompt: readonly number[],
) {
  const snapshot = await adapter.snapshot();
  const { samples, promptLogprobs } = await model.sample({
    adapter: snapshot,
    prompt: [...prompt],
    maxTokens: 24,
    seed: 5,
    promptLogprobs: true,
  });
  const tokens = [...prompt, ...(samples[0]?.tokens ?? [])];
  const inputs = { target_tokens: { data: tokens.slice(1), shape: [tokens.length - 1] } };
  const datum = { tokens: tokens.slice(0, -1), inputs };
  const { outputs } = await adapter.forward([datum], { lossFn: "cross_entropy" });
  const sampled = [...(promptLogprobs ?? []).slice(1), ...(samples[0]?.logprobs ?? [])];
  const scored = [...(outputs[0]?.logprobs ?? [])];
  return sampled.map((value, i) => Math.abs(value - (scored[i] ?? NaN))).toSorted((a, b) => a - b);
}

it.each(families)("keeps close to 32 bits, and trainer to sampler, on %s", async (family) => {
  const expected = readExpected(family);
  const data = fixtureData(expected, "cross_entropy");
  const exact = await loadedAdapter(family, {});
  const wanted = await logprobsAndGradient(exact.adapter, data);
  await exact.model.unload();
  const limits = [
    // The norm inside the delta rule divides by next to nothing at first tokens.
    [oneDigit, 0.03, family === "qwen3_5" ? 0.97 : 0.995],
    [sixteenBits, 0.015, family === "qwen3_5" ? 0.99 : 0.999],
  ] as const;
  for (const [precision, mostDifference, leastCosine] of limits) {
    const { model, adapter } = await loadedAdapter(family, precision);
    const found = await logprobsAndGradient(adapter, data);
    const difference = meanDifference(found.logprobs, wanted.logprobs);
    expect(difference).toBeLessThan(mostDifference);
    // Rows of this model have fewer than 128 numbers and stay in 32 bits.
    if (family !== "lfm2") expect(difference).toBeGreaterThan(0);
    expect(cosine(found.gradient, wanted.gradient)).toBeGreaterThan(leastCosine);
    if (precision === sixteenBits) {
      const differences = await sampledAndScored(model, adapter, expected.data[0]?.tokens ?? []);
      expect(differences.at(-1)).toBeLessThan(2e-3);
      expect(differences[differences.length >> 1]).toBeLessThan(2e-4);
    }
    await model.unload();
  }
});

/** Models with rows long enough for 8 bits, with layers of each mixer besides attention. */
const wide = {
  vocab_size: 60,
  hidden_size: 128,
  intermediate_size: 192,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 32,
  max_position_embeddings: 256,
  // The norm inside the delta rule would divide by next to nothing at first tokens.
  rms_norm_eps: 1e-3,
};
const wideModels: readonly (readonly [string, object])[] = [
  [
    "LFM2",
    {
      architectures: ["Lfm2ForCausalLM"],
      block_auto_adjust_ff_dim: false,
      layer_types: ["conv", "full_attention", "conv"],
    },
  ],
  [
    "Granite 4 H",
    {
      architectures: ["GraniteMoeHybridForCausalLM"],
      shared_intermediate_size: 192,
      layer_types: ["mamba", "attention", "mamba"],
      mamba_n_heads: 8,
      mamba_d_state: 16,
    },
  ],
  [
    "Qwen3.5",
    {
      architectures: ["Qwen3_5ForCausalLM"],
      layer_types: ["linear_attention", "full_attention", "linear_attention"],
      linear_num_key_heads: 2,
      linear_num_value_heads: 4,
      linear_key_head_dim: 16,
      linear_value_head_dim: 32,
    },
  ],
];

it.each(wideModels)("computes every mixer of %s with int8 weights", async (_, own) => {
  const config = parseModelConfig({ ...wide, ...own });
  const random = seededRandom(7);
  const tensors = new Map(
    [...expectedTensors(config)].map(([name, shape]) => {
      const length = shape.reduce((product, dim) => product * dim, 1);
      const isNorm = name.endsWith("norm.weight");
      const data = Float32Array.from({ length }, () => (random() - 0.5) * (isNorm ? 0.2 : 0.18));
      const isScale = isNorm && (config.normsPlusOne !== true || name.includes("linear_attn"));
      return [name, { shape, data: isScale ? data.map((value) => value + 1) : data }];
    }),
  );
  const texts = [70, 20].map((length, at) =>
    Array.from({ length }, (_unused, i) => (7 * i * i + 13 * i + 31 * at) % config.vocabSize),
  );
  const data = texts.map((tokens) => {
    const shape = [tokens.length - 1];
    const inputs = { target_tokens: { data: tokens.slice(1), shape } };
    return { tokens: tokens.slice(0, -1), inputs };
  });
  const found = [];
  for (const precision of [{}, sixteenBits]) {
    const model = await engine.createModel(config, { tensors, ...precision });
    const adapter = await model.createAdapter({ rank: 4, seed: 1 });
    found.push(await logprobsAndGradient(adapter, data));
    const differences = await sampledAndScored(model, adapter, texts[0] ?? []);
    expect(differences.at(-1)).toBeLessThan(2e-3);
    await model.unload();
  }
  const [exact, rounded] = found;
  if (exact === undefined || rounded === undefined) throw new Error("a precision is missing");
  const difference = meanDifference(rounded.logprobs, exact.logprobs);
  expect(difference).toBeLessThan(0.015);
  expect(difference).toBeGreaterThan(1e-5);
  expect(cosine(rounded.gradient, exact.gradient)).toBeGreaterThan(0.999);
});

it("keeps close to 32 bits on a text of the embedded model", async () => {
  const prompt = [5, 99, 310];
  const exact = await engine.loadModel(embeddedModelFolder);
  const { samples } = await exact.sample({ prompt, maxTokens: 80, numSamples: 8, seed: 3 });
  const data = samples.map(({ tokens }) => {
    const [all, shape] = [[...prompt, ...tokens], [tokens.length + 2]];
    return { tokens: all.slice(0, -1), inputs: { target_tokens: { data: all.slice(1), shape } } };
  });
  const settings = { rank: 8, seed: 3 };
  const wanted = await logprobsAndGradient(await exact.createAdapter(settings), data);
  const limits = [
    [oneDigit, { 8: [0.03, 0.995], 7: [0.05, 0.99] }],
    [sixteenBits, { 8: [0.015, 0.9985], 7: [0.015, 0.9985] }],
  ] as const;
  for (const [precision, byBits] of limits) {
    const model = await engine.loadModel(embeddedModelFolder, precision);
    const [mostDifference, leastCosine] = byBits[digitBitsOf(model)];
    const found = await logprobsAndGradient(await model.createAdapter(settings), data);
    await model.unload();
    expect(meanDifference(found.logprobs, wanted.logprobs)).toBeLessThan(mostDifference);
    expect(cosine(found.gradient, wanted.gradient)).toBeGreaterThan(leastCosine);
  }
  await exact.unload();
});

it("keeps trainer and sampler together on a prompt of the embedded model", async () => {
  const model = await engine.loadModel(embeddedModelFolder, sixteenBits);
  const adapter = await model.createAdapter({ rank: 8, seed: 2 });
  const prompt = Array.from({ length: 48 }, (_, i) => (7 * i * i + 13 * i + 131) % 2000);
  const differences = await sampledAndScored(model, adapter, prompt);
  expect(differences.at(-1)).toBeLessThan(2e-3);
  expect(differences[differences.length >> 1]).toBeLessThan(2e-4);
  await model.unload();
});

it("adds each layer's own bias when the sampler joins several products", async () => {
  const config = { hidden_size: 128, head_dim: 32, attention_bias: true, mlp_bias: true };
  await writeTinyModel(temporary("biased"), {
    config: { ...config, num_attention_heads: 4, num_key_value_heads: 2, intermediate_size: 160 },
    edit: (tensors) => {
      for (const tensor of tensors.values()) {
        const { name, data } = tensor;
        if (!name.endsWith("proj.weight") || !(data instanceof Float32Array)) continue;
        tensors.set(name, { ...tensor, data: data.map((value) => value / 10) });
      }
    },
  });
  const model = await engine.loadModel(temporary("biased"), sixteenBits);
  const adapter = await model.createAdapter({ rank: 4, seed: 1 });
  const differences = await sampledAndScored(model, adapter, [3, 1, 4, 1, 5, 9, 2, 6]);
  expect(differences.at(-1)).toBeLessThan(2e-3);
  await model.unload();
});

/** The embedded model with some channels 30 times as large, and their readers scaled down. */
async function sproutWithOutliers() {
  const opened = await openModelFolder(embeddedModelFolder);
  const { config } = opened;
  const tensors = new Map<string, NamedTensor>();
  for (const [name, { shape }] of opened.weights.tensors) {
    tensors.set(name, { data: await opened.weights.read(name), shape });
  }
  await opened.close();
  const factor = 30;
  const scaleRows = (name: string, rows: readonly number[], by: number): void => {
    const { data, shape } = tensors.get(name) ?? { data: new Float32Array(), shape: [] };
    const columns = shape[1] ?? 1;
    for (const row of rows) {
      for (let i = row * columns; i < (row + 1) * columns; i++) data[i] = (data[i] ?? 0) * by;
    }
  };
  const scaleColumns = (name: string, columns: readonly number[], by: number): void => {
    const { data, shape } = tensors.get(name) ?? { data: new Float32Array(), shape: [] };
    const width = shape[1] ?? 1;
    for (let start = 0; start < data.length; start += width) {
      for (const column of columns) data[start + column] = (data[start + column] ?? 0) * by;
    }
  };
  for (let layer = 0; layer < config.layers; layer++) {
    const named = (name: string): string => `model.layers.${layer}.${name}.weight`;
    const channels = [3, 80, 155].map((channel) => (channel + 7 * layer) % config.hiddenSize);
    const inner = [1, 2, 3, 4, 5].map((i) => (97 * i + 13 * layer) % config.intermediateSize);
    scaleRows(named("input_layernorm"), channels, factor);
    scaleRows(named("post_attention_layernorm"), channels, factor);
    const readers = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
    for (const reader of [...readers, "mlp.gate_proj", "mlp.up_proj"]) {
      scaleColumns(named(reader), channels, 1 / factor);
    }
    scaleRows(named("mlp.up_proj"), inner, factor);
    scaleColumns(named("mlp.down_proj"), inner, 1 / factor);
  }
  return { config, tensors };
}

it("keeps gradients with 16 bits where some channels are far larger than others", async () => {
  const { config, tensors } = await sproutWithOutliers();
  const data = [1, 2, 3].map((seed) => {
    const tokens = Array.from({ length: 64 }, (_, i) => (7 * i * i + 13 * i + 131 * seed) % 2000);
    const shape = [tokens.length];
    return { tokens, inputs: { target_tokens: { data: [...tokens.slice(1), 1], shape } } };
  });
  const gradients: Float32Array[] = [];
  for (const options of [{}, sixteenBits]) {
    const model = await engine.createModel(config, { tensors, ...options });
    const adapter = await model.createAdapter({ rank: 8, seed: 3 });
    gradients.push((await logprobsAndGradient(adapter, data)).gradient);
    await model.unload();
  }
  const [exact = new Float32Array(), rounded = new Float32Array()] = gradients;
  expect(cosine(rounded, exact)).toBeGreaterThan(0.985);
});

describe("a model with int8 weights", () => {
  it.each([oneDigit, sixteenBits])("samples the same in any batch (%o)", async (precision) => {
    const model = await engine.loadModel(embeddedModelFolder, precision);
    const adapter = await model.createAdapter({ rank: 8, seed: 2 });
    const snapshot = await adapter.snapshot();
    const prompt = [5, 99, 310, 8, 41, 700, 12];
    const request = { prompt, adapter: snapshot, maxTokens: 20, seed: 3, temperature: 1 };
    const alone = await model.sample(request);
    const [together] = await Promise.all([
      model.sample(request),
      model.sample({ prompt: prompt.slice(2), numSamples: 5, maxTokens: 30, seed: 4 }),
      model.sample({ ...request, prompt: prompt.slice(1), seed: 9 }),
    ]);
    expect(together.samples).toEqual(alone.samples);
  });

  it("scores a datum nearly the same in any batch", async () => {
    const { adapter } = await loadedAdapter("llama", sixteenBits);
    const data = fixtureData(readExpected("llama"), "cross_entropy");
    const together = await adapter.forward(data, { lossFn: "cross_entropy" });
    for (const [index, datum] of data.entries()) {
      const alone = await adapter.forward([datum], { lossFn: "cross_entropy" });
      const beside = together.outputs[index]?.logprobs ?? [];
      for (const [i, value] of (alone.outputs[0]?.logprobs ?? []).entries()) {
        expect(Math.abs(value - (beside[i] ?? NaN))).toBeLessThan(5e-4);
      }
    }
  });

  it.each([oneDigit, sixteenBits])("learns like in 32 bits (%o)", async (precision) => {
    const data = fixtureData(readExpected("qwen3"), "cross_entropy");
    const losses: number[][] = [];
    for (const options of [{}, precision]) {
      const { model, adapter } = await loadedAdapter("qwen3", options);
      const found: number[] = [];
      for (let step = 0; step < 12; step++) {
        const { metrics } = await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
        await adapter.optimStep({ learningRate: 5e-3 });
        found.push(metrics["loss:sum"] ?? NaN);
      }
      losses.push(found);
      await model.unload();
    }
    const [exact = [], rounded = []] = losses;
    expect(rounded.at(-1)).toBeLessThan(0.5 * (rounded[0] ?? 0));
    for (const [step, loss] of exact.entries()) {
      expect(Math.abs((rounded[step] ?? NaN) - loss)).toBeLessThan(0.05 * (exact[0] ?? NaN));
    }
  });

  it("reports its precision", async () => {
    const plain = await engine.loadModel(fixture("llama/model"));
    expect(plain.precision).toEqual({ weights: "f32" });
    const model = await engine.loadModel(fixture("llama/model"), sixteenBits);
    expect(model.precision).toMatchObject({ weights: "int8", activations: "int16" });
  });

  it("uses as many digits as 16 bits take, or as another model had", async () => {
    const model = await engine.loadModel(fixture("llama/model"), sixteenBits);
    expect(model.precision).toMatchObject({ digits: digitBitsOf(model) === 8 ? 2 : 3 });
    const other = await engine.loadModel(fixture("llama/model"), { ...sixteenBits, digits: 2 });
    expect(other.precision).toMatchObject({ ...sixteenBits, activations: "int16", digits: 2 });
  });

  it("refuses changes of its weights", async () => {
    const model = await engine.loadModel(fixture("llama/model"), sixteenBits);
    await expect(model.createFullTuning()).rejects.toMatchObject({
      code: "frozen_weights",
      message: expect.stringMatching(/train an adapter, or load the model with weights: "f32"/),
    });
  });

  it.each([
    [{ weights: "int4" }, /weights is "int4"/],
    [{ weights: "int8", activations: "f32" }, /activations is "f32"/],
    [{ activations: "int8" }, /activations is "int8".*set weights to "int8" too/],
    [{ digits: 2 }, /digits is 2.*set weights to "int8" too/],
    [{ weights: "int8", digits: 4 }, /digits is 4; it must be 1 or 2 or 3/],
  ])("is refused before anything is read with %o", async (options, message) => {
    await expect(engine.loadModel("/nowhere", options as LoadModelOptions)).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(message),
    });
  });
});
