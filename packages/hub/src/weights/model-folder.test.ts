import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { engineErrorOf } from "../../test/support/expect-engine-error.js";
import { modelFixture } from "../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../test/support/temporary-folder.js";
import {
  repeatableValues,
  tinyLlama,
  writeTinyModel,
  type TinyModelOptions,
} from "../../test/support/tiny-model.js";
import { openModelFolder, type ModelFolder } from "./model-folder.js";
import { embeddingName, expectedTensors, unembeddingName } from "./tensor-names.js";

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

async function mismatchOf(options: TinyModelOptions): Promise<string> {
  await writeTinyModel(inFolder("model"), options);
  return engineErrorOf("model_mismatch", () => open(inFolder("model")));
}

const shardNames = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

describe("opening a folder", () => {
  it.each(["qwen3", "llama"])("offers every tensor of the %s fixture", async (name) => {
    const model = await open(modelFixture(`${name}/model`));
    const expected = expectedTensors(model.config);
    expect([...model.weights.tensors.keys()]).toEqual([...expected.keys()]);
    for (const [tensor, shape] of expected) {
      const floats = await model.weights.read(tensor);
      expect(floats).toHaveLength(shape.reduce((a, b) => a * b, 1));
    }
  });

  it("reads shards through their index", async () => {
    await writeTinyModel(inFolder("model"), { files: shardNames, dtype: "BF16" });
    const { weights } = await open(inFolder("model"));
    const expected = repeatableValues(embeddingName, 160);
    const target = new Float32Array(160);
    expect(await weights.read(embeddingName, target)).toBe(target);
    for (const [i, value] of target.entries()) expect(value).toBeCloseTo(expected[i] ?? NaN, 2);
  });

  it("requires biases of Qwen2 and head norms of Qwen3", async () => {
    const config = { architectures: ["Qwen2ForCausalLM"], model_type: "qwen2" };
    await writeTinyModel(inFolder("qwen2"), { config });
    const qwen2 = await open(inFolder("qwen2"));
    const bias = qwen2.weights.tensors.get("model.layers.1.self_attn.k_proj.bias");
    expect(bias?.shape).toEqual([4]);
    const qwen3 = await open(modelFixture("qwen3/model"));
    const norm = qwen3.weights.tensors.get("model.layers.2.self_attn.q_norm.weight");
    expect(norm?.shape).toEqual([24]);
  });

  it("has no unembedding when embeddings are tied, even if the file repeats it", async () => {
    for (const repeated of [false, true]) {
      await writeTinyModel(inFolder("model"), {
        config: { tie_word_embeddings: true },
        edit: (tensors) => {
          const embedding = tensors.get(embeddingName);
          if (!embedding || !repeated) return;
          tensors.set(unembeddingName, { ...embedding, name: unembeddingName });
        },
      });
      const { weights } = await open(inFolder("model"));
      expect(weights.tensors.has(unembeddingName)).toBe(false);
      expect(weights.tensors.has(embeddingName)).toBe(true);
    }
  });

  /** Writes a model with its text under a prefix; `keep` leaves tensors out. */
  async function writeWrapped(
    folder: string,
    [prefix, headPrefix]: readonly [string, string],
    fields: { readonly whole?: object; readonly text?: object } = {},
    others: readonly string[] = [],
    keep: (name: string) => boolean = () => true,
  ): Promise<void> {
    const text = { ...tinyLlama, architectures: undefined, model_type: "mistral" };
    const stored = (name: string) =>
      name === unembeddingName ? `${headPrefix}${name}` : name.replace(/^model\./, prefix);
    await writeTinyModel(folder, {
      config: { architectures: ["MistralForCausalLM"], model_type: "mistral" },
      edit: (tensors) => {
        const all = [...tensors.values()].filter(({ name }) => keep(name));
        tensors.clear();
        for (const tensor of all) {
          const name = stored(tensor.name);
          tensors.set(name, { ...tensor, name });
        }
        for (const name of others)
          tensors.set(name, { name, shape: [1], data: Float32Array.of(1) });
      },
    });
    const whole = {
      architectures: ["Mistral3ForConditionalGeneration"],
      model_type: "mistral3",
      text_config: { ...text, ...fields.text },
      vision_config: {},
      ...fields.whole,
    };
    await writeFile(path.join(folder, "config.json"), JSON.stringify(whole));
  }

  it.each([
    ["model.language_model.", ""],
    ["language_model.model.", "language_model."],
  ])("takes the text out of a model with vision, under %s", async (...spelling) => {
    const vision = ["model.visual.patch.weight", "vision_tower.norm.weight", "mtp.fc.weight"];
    await writeWrapped(inFolder("wrapped"), spelling, {}, vision);
    const model = await open(inFolder("wrapped"));
    expect([...model.weights.tensors.keys()]).toEqual([...expectedTensors(model.config).keys()]);
    expect(await model.weights.read(embeddingName)).toEqual(repeatableValues(embeddingName, 160));
    expect(model.ignored.toSorted()).toEqual(vision.toSorted());
    expect(model.storedName(unembeddingName)).toBe(`${spelling[1]}${unembeddingName}`);
  });

  it.each([
    [true, false],
    [false, true],
    [undefined, true],
    [undefined, false],
  ])(
    "lets the files decide where it is tied by one level and not by the other (%s, %s)",
    async (whole, text) => {
      const fields = {
        whole: { tie_word_embeddings: whole },
        text: { tie_word_embeddings: text },
      };
      const spelling = ["language_model.model.", "language_model."] as const;
      await writeWrapped(inFolder("untied"), spelling, fields);
      const untied = await open(inFolder("untied"));
      expect(untied.config.tiedEmbeddings).toBe(false);
      expect(untied.weights.tensors.has(unembeddingName)).toBe(true);
      const keep = (name: string): boolean => name !== unembeddingName;
      await writeWrapped(inFolder("tied"), spelling, fields, [], keep);
      expect((await open(inFolder("tied"))).config.tiedEmbeddings).toBe(true);
    },
  );

  it("ignores stored rotation frequencies", async () => {
    const name = "model.layers.0.self_attn.rotary_emb.inv_freq";
    const data = Float32Array.of(1, 0.1);
    await writeTinyModel(inFolder("model"), {
      edit: (tensors) => tensors.set(name, { name, shape: [2], data }),
    });
    const { weights } = await open(inFolder("model"));
    expect(weights.tensors.has(name)).toBe(false);
    expect(await engineErrorOf("unknown_tensor", () => weights.read(name))).toContain(name);
  });
});

describe("a folder that does not fit", () => {
  it("is refused with every problem in one error", async () => {
    const message = await mismatchOf({
      edit: (tensors) => {
        tensors.delete("model.norm.weight");
        tensors.delete("model.layers.1.mlp.up_proj.weight");
        const name = "model.layers.0.mlp.up_proj.weight";
        tensors.set(name, { name, shape: [8, 12], data: new Float32Array(96) });
        const bias = "model.layers.0.self_attn.q_proj.bias";
        tensors.set(bias, { name: bias, shape: [8], data: new Float32Array(8) });
      },
    });
    for (const words of [
      '"model.norm.weight" is missing',
      '"model.layers.1.mlp.up_proj.weight" is missing',
      '"model.layers.0.mlp.up_proj.weight" has shape [8, 12] instead of [12, 8]',
      '"model.layers.0.self_attn.q_proj.bias" is not expected',
    ]) {
      expect(message).toContain(words);
    }
  });

  it("is refused when it has more layers than the configuration", async () => {
    const message = await mismatchOf({
      edit: (tensors) => {
        const name = "model.layers.2.input_layernorm.weight";
        tensors.set(name, { name, shape: [8], data: new Float32Array(8) });
      },
    });
    expect(message).toContain('"model.layers.2.input_layernorm.weight" is not expected');
  });

  it("is refused when untied embeddings lack the unembedding", async () => {
    const message = await mismatchOf({ edit: (tensors) => tensors.delete(unembeddingName) });
    expect(message).toContain('"lm_head.weight" is missing');
  });

  it("is refused when embeddings are declared as tied and differ", async () => {
    const message = await mismatchOf({
      config: { tie_word_embeddings: true },
      edit: (tensors) => {
        const data = repeatableValues("other", 160);
        tensors.set(unembeddingName, { name: unembeddingName, shape: [20, 8], data });
      },
    });
    expect(message).toContain("tie_word_embeddings");
  });

  it("is refused when a weight is not stored as a float", async () => {
    await writeTinyModel(inFolder("model"));
    const file = inFolder("model", "model.safetensors");
    const bytes = await readFile(file, "latin1");
    const entry = '"model.norm.weight":{"dtype":"F32"';
    await writeFile(file, bytes.replace(entry, entry.replace("F32", "I32")), "latin1");
    const message = await engineErrorOf("model_mismatch", () => open(inFolder("model")));
    expect(message).toContain('"model.norm.weight" is stored as I32');
  });

  it("is refused when it has no weights, or other ones", async () => {
    await writeTinyModel(inFolder("model"));
    await rm(inFolder("model", "model.safetensors"));
    const message = await engineErrorOf("weights_missing", () => open(inFolder("model")));
    expect(message).toContain("model.safetensors.index.json");
  });

  it("is refused when shards are missing, and names them", async () => {
    await writeTinyModel(inFolder("model"), { files: shardNames });
    await rm(inFolder("model", "model-00002-of-00002.safetensors"));
    const message = await engineErrorOf("weights_missing", () => open(inFolder("model")));
    expect(message).toContain("model-00002-of-00002.safetensors");
  });

  it("is refused when the index is wrong", async () => {
    await writeTinyModel(inFolder("model"), { files: shardNames });
    const index = inFolder("model", "model.safetensors.index.json");
    const [first = ""] = shardNames;
    const wrong: [map: unknown, word: string][] = [
      [{ weight_map: { [embeddingName]: first, "model.extra": first } }, '"model.extra" is not in'],
      [{ weight_map: { [embeddingName]: "../elsewhere.safetensors" } }, "../elsewhere"],
      [{}, "weight_map"],
    ];
    for (const [json, word] of wrong) {
      await writeFile(index, JSON.stringify(json));
      const message = await engineErrorOf("invalid_weight_index", () => open(inFolder("model")));
      expect(message).toContain(word);
    }
  });

  it("is refused when it is no folder, or has no configuration", async () => {
    const absent = inFolder("absent");
    expect(await engineErrorOf("folder_missing", () => open(absent))).toContain(absent);
    expect(await engineErrorOf("file_missing", () => open(inFolder()))).toContain("config.json");
    await writeFile(inFolder("config.json"), "{");
    expect(await engineErrorOf("invalid_json", () => open(inFolder()))).toContain("config.json");
  });
});
