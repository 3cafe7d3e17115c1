import { readdir, readFile, writeFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { readJsonObject } from "../files/json.js";
import { engineErrorOf } from "../../test/support/expect-engine-error.js";
import { modelFixture } from "../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../test/support/temporary-folder.js";
import { tinyAdapter } from "../../test/support/tiny-adapter.js";
import { tinyLlama, writeTinyModel } from "../../test/support/tiny-model.js";
import { mergeAdapter, type MergeOptions, type MergeProgress } from "./merge.js";
import { openModelFolder, readModelConfig, type ModelFolder } from "./model-folder.js";
import { loraTensorNames, type LoraAdapter } from "./peft/adapter.js";
import { readAdapter } from "./peft/read-adapter.js";
import { SafetensorsFile } from "./safetensors.js";
import { embeddingName, unembeddingName } from "./tensor-names.js";

const inFolder = useTemporaryFolder();
const opened: ModelFolder[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((model) => model.close()));
});

async function open(folder: string): Promise<ModelFolder> {
  const model = await openModelFolder(folder);
  opened.push(model);
  return model;
}

async function merge(
  adapter: LoraAdapter,
  options: Partial<MergeOptions> = {},
): Promise<ModelFolder> {
  const { output = inFolder("merged") } = options;
  await mergeAdapter({ base: inFolder("base"), adapter, ...options, output });
  return open(output);
}

/** W + alpha / rank * B A, by definition. */
function mergedByDefinition(weight: Float32Array, adapter: LoraAdapter, path: string): number[] {
  const names = loraTensorNames(path);
  const a = adapter.tensors.get(names.a)?.data ?? new Float32Array();
  const b = adapter.tensors.get(names.b)?.data ?? new Float32Array();
  const columns = a.length / adapter.rank;
  return [...weight].map((value, i) => {
    const row = Math.floor(i / columns);
    let sum = 0;
    for (let k = 0; k < adapter.rank; k++) {
      sum += (b[row * adapter.rank + k] ?? NaN) * (a[k * columns + (i % columns)] ?? NaN);
    }
    return value + (adapter.alpha / adapter.rank) * sum;
  });
}

function expectClose(actual: Float32Array, expected: ArrayLike<number>, tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of actual.entries()) {
    expect(Math.abs(value - (expected[i] ?? NaN))).toBeLessThanOrEqual(tolerance);
  }
}

const deltaLayer = "model.layers.0.linear_attn";

describe("a merged model", () => {
  it("has the weights that PEFT's own merge gives", async () => {
    const base = modelFixture("qwen3/model");
    const adapter = await readAdapter(modelFixture("qwen3/adapter"), {
      config: await readModelConfig(base),
    });
    const merged = await merge(adapter, { base });
    const reference = await SafetensorsFile.open(modelFixture("peft/merged.safetensors"));
    for (const name of reference.tensors.keys()) {
      expectClose(await merged.weights.read(name), await reference.readFloats(name), 2e-6);
    }
    await reference.close();
  });

  it("differs from its base by alpha / rank * B A exactly where the adapter is", async () => {
    const config = await writeTinyModel(inFolder("base"));
    const adapter = tinyAdapter(config, { trainAttn: true, trainMlp: false, trainUnembed: true });
    const merged = await merge(adapter);
    const base = await open(inFolder("base"));
    for (const name of base.weights.tensors.keys()) {
      const before = await base.weights.read(name);
      const after = await merged.weights.read(name);
      const adapted = /self_attn\..*_proj\.weight$/.test(name) || name === unembeddingName;
      if (!adapted) expect(after, name).toEqual(before);
      else
        expectClose(
          after,
          mergedByDefinition(before, adapter, name.replace(/\.weight$/, "")),
          1e-5,
        );
    }
  });

  it("adds three adapters to their rows of a fused matrix", async () => {
    const base = modelFixture("qwen3_5/model");
    const config = await readModelConfig(base);
    const adapter = await readAdapter(modelFixture("qwen3_5/adapter"), { config });
    const merged = await merge(adapter, { base });
    const before = await (await open(base)).weights.read(`${deltaLayer}.in_proj_qkv.weight`);
    const after = await merged.weights.read(`${deltaLayer}.in_proj_qkv.weight`);
    let first = 0;
    for (const [part, rows] of [
      ["q", 32],
      ["k", 32],
      ["v", 96],
    ] as const) {
      const end = first + rows * config.hiddenSize;
      const path = `${deltaLayer}.in_proj_${part}`;
      const wanted = mergedByDefinition(before.subarray(first, end), adapter, path);
      expectClose(after.subarray(first, end), wanted, 1e-5);
      first = end;
    }
    expect(first).toBe(after.length);
  });

  it("unties embeddings of a text model inside another", async () => {
    const text = { ...tinyLlama, architectures: undefined, model_type: "mistral" };
    const tied = { tie_word_embeddings: true };
    await writeTinyModel(inFolder("base"), {
      config: { architectures: ["MistralForCausalLM"], model_type: "mistral", ...tied },
      edit: (tensors) => {
        const all = [...tensors.values()];
        tensors.clear();
        for (const tensor of all) {
          const name = `language_model.${tensor.name}`;
          tensors.set(name, { ...tensor, name });
        }
      },
    });
    const architectures = ["Mistral3ForConditionalGeneration"];
    const whole = { architectures, ...tied, text_config: { ...text, ...tied } };
    await writeFile(inFolder("base", "config.json"), JSON.stringify(whole));
    const base = await open(inFolder("base"));
    const adapter = tinyAdapter(base.config);
    const parted = await merge(adapter);
    expect(parted.config.tiedEmbeddings).toBe(false);
    expect(parted.storedName(unembeddingName)).toBe(`language_model.${unembeddingName}`);
    const embedding = await base.weights.read(embeddingName);
    const unembedding = await parted.weights.read(unembeddingName);
    expectClose(unembedding, mergedByDefinition(embedding, adapter, "lm_head"), 1e-5);
  });

  it("unties embeddings when the unembedding is adapted, and only then", async () => {
    const config = await writeTinyModel(inFolder("base"), {
      config: { tie_word_embeddings: true },
    });
    const base = await open(inFolder("base"));
    const embedding = await base.weights.read(embeddingName);
    const adapter = tinyAdapter(config);
    const parted = await merge(adapter);
    expect(parted.config.tiedEmbeddings).toBe(false);
    expect(await parted.weights.read(embeddingName)).toEqual(embedding);
    const unembedding = await parted.weights.read(unembeddingName);
    expectClose(unembedding, mergedByDefinition(embedding, adapter, "lm_head"), 1e-5);
    const flags = { trainAttn: true, trainMlp: true, trainUnembed: false };
    const tied = await merge(tinyAdapter(config, flags), { output: inFolder("tied") });
    expect(tied.config.tiedEmbeddings).toBe(true);
    expect(tied.weights.tensors.has(unembeddingName)).toBe(false);
  });

  it("keeps files and types, or uses the requested type", async () => {
    const files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    const config = await writeTinyModel(inFolder("base"), {
      files,
      dtype: "BF16",
      config: { tie_word_embeddings: true, torch_dtype: "bfloat16" },
    });
    const adapter = tinyAdapter(config);
    const kept = await merge(adapter);
    expect(
      (await readdir(inFolder("merged"))).filter((name) => name.endsWith(".safetensors")),
    ).toEqual(files);
    expect(new Set([...kept.weights.tensors.values()].map(({ dtype }) => dtype))).toEqual(
      new Set(["BF16"]),
    );
    const index = await readJsonObject(inFolder("merged", "model.safetensors.index.json"));
    const elements = [...kept.weights.tensors.values()].reduce(
      (sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1),
      0,
    );
    expect(index["metadata"]).toEqual({ total_size: elements * 2 });
    const wide = await merge(adapter, { dtype: "F32", overwrite: true });
    expect(wide.weights.tensors.get(unembeddingName)?.dtype).toBe("F32");
    expect(await readJsonObject(inFolder("merged", "config.json"))).toMatchObject({
      torch_dtype: "float32",
      tie_word_embeddings: false,
    });
  });

  it("keeps the spelling of numbers in its configuration", async () => {
    const base = modelFixture("granite_hybrid/model");
    const config = await readModelConfig(base);
    await merge(tinyAdapter(config), { base, dtype: "BF16" });
    const text = await readFile(`${base}/config.json`, "utf8");
    expect(text).toContain("0.0,");
    expect(await readFile(inFolder("merged", "config.json"), "utf8")).toBe(
      text
        .replace('"tie_word_embeddings": true', '"tie_word_embeddings": false')
        .replace('"dtype": "float32"', '"dtype": "bfloat16"'),
    );
  });

  it("states its type in the configuration of every part that has one", async () => {
    const config = await writeTinyModel(inFolder("base"), {
      config: { architectures: ["MistralForCausalLM"], model_type: "mistral" },
    });
    const text = { ...tinyLlama, architectures: undefined, model_type: "mistral" };
    const architectures = ["Mistral3ForConditionalGeneration"];
    const part = { dtype: "float32", tie_word_embeddings: false };
    const whole = {
      architectures,
      ...part,
      text_config: { ...text, ...part },
      vision_config: { torch_dtype: "float32" },
    };
    await writeFile(inFolder("base", "config.json"), JSON.stringify(whole));
    await merge(tinyAdapter(config), { dtype: "F16" });
    expect(await readJsonObject(inFolder("merged", "config.json"))).toEqual({
      ...whole,
      dtype: "float16",
      text_config: { ...JSON.parse(JSON.stringify(whole.text_config)), dtype: "float16" },
      vision_config: { torch_dtype: "float16" },
    });
  });

  it("comes with the base's tokenizer, settings and licence, but not with other files", async () => {
    const config = await writeTinyModel(inFolder("base"));
    const companions = [
      "tokenizer.json",
      "chat_template.jinja",
      "LICENSE",
      "generation_config.json",
    ];
    const others = ["README.md", "pytorch_model.bin", "adapter_config.json"];
    for (const name of companions) await writeFile(inFolder("base", name), "{}");
    for (const name of others) await writeFile(inFolder("base", name), "x");
    await merge(tinyAdapter(config));
    const expected = [...companions, "config.json", "model.safetensors"];
    expect((await readdir(inFolder("merged"))).toSorted()).toEqual(expected.toSorted());
    expect(await readFile(inFolder("merged", "LICENSE"), "utf8")).toBe("{}");
  });

  it("is reported tensor by tensor", async () => {
    const config = await writeTinyModel(inFolder("base"));
    const reports: MergeProgress[] = [];
    await merge(tinyAdapter(config), { onProgress: (progress) => reports.push(progress) });
    const total = reports.length;
    expect(reports.map(({ tensors }) => tensors)).toEqual(
      Array.from({ length: total }, (_, i) => i + 1),
    );
    expect(reports.at(-1)?.totalTensors).toBe(total);
  });
});

describe("a merge that cannot be done", () => {
  it("is refused before anything is written", async () => {
    const config = await writeTinyModel(inFolder("base"));
    const other = tinyAdapter({ ...config, hiddenSize: 16 });
    expect(await engineErrorOf("unsupported_adapter", () => merge(other))).toContain("q_proj");
    const onto = () => merge(tinyAdapter(config), { output: inFolder("base"), overwrite: true });
    expect(await engineErrorOf("invalid_options", onto)).toContain("output");
    expect(await readdir(inFolder())).toEqual(["base"]);
  });

  it("leaves no files when aborted", async () => {
    const config = await writeTinyModel(inFolder("base"));
    const controller = new AbortController();
    const reason = new Error("enough");
    const merging = merge(tinyAdapter(config), {
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    });
    await expect(merging).rejects.toBe(reason);
    expect(await readdir(inFolder())).toEqual(["base"]);
  });
});
