import { cp, readFile, rename, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readJsonObject } from "../../files/json.js";
import { engineErrorOf } from "../../../test/support/expect-engine-error.js";
import { modelFixture } from "../../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../../test/support/temporary-folder.js";
import { openModelFolder, type ModelFolder } from "../model-folder.js";
import { writeSafetensors, type TensorToWrite } from "../safetensors-writer.js";
import { SafetensorsFile } from "../safetensors.js";
import { loraTensorNames } from "./adapter.js";
import { readAdapter } from "./read-adapter.js";

const inFolder = useTemporaryFolder();
let qwen3: ModelFolder;
let llama: ModelFolder;

beforeAll(async () => {
  qwen3 = await openModelFolder(modelFixture("qwen3/model"));
  llama = await openModelFolder(modelFixture("llama/model"));
});

afterAll(async () => {
  await qwen3.close();
  await llama.close();
});

/** A copy of a fixture's adapter with other configuration and tensors. */
async function changedAdapter(changes: {
  config?: object;
  edit?: (tensors: Map<string, TensorToWrite>) => void;
}): Promise<string> {
  const folder = inFolder("adapter");
  await cp(modelFixture("qwen3/adapter"), folder, { recursive: true });
  const config = await readJsonObject(`${folder}/adapter_config.json`);
  await writeFile(
    `${folder}/adapter_config.json`,
    JSON.stringify({ ...config, ...changes.config }),
  );
  if (!changes.edit) return folder;
  const weights = `${folder}/adapter_model.safetensors`;
  const file = await SafetensorsFile.open(weights);
  const tensors = new Map<string, TensorToWrite>();
  for (const { name, shape } of file.tensors.values()) {
    tensors.set(name, { name, shape, data: await file.readFloats(name) });
  }
  await file.close();
  changes.edit(tensors);
  await writeSafetensors(weights, tensors.values());
  return folder;
}

async function refusalOf(changes: Parameters<typeof changedAdapter>[0]): Promise<string> {
  const folder = await changedAdapter(changes);
  return engineErrorOf("unsupported_adapter", () => readAdapter(folder, qwen3));
}

describe("reading an adapter", () => {
  it("gives rank, alpha, targets and every tensor", async () => {
    const adapter = await readAdapter(modelFixture("qwen3/adapter"), qwen3);
    expect(adapter).toMatchObject({
      rank: 4,
      alpha: 32,
      trainAttn: true,
      trainMlp: true,
      trainUnembed: true,
      seed: null,
      baseModel: null,
    });
    expect(adapter.targets).toHaveLength(8);
    const file = await SafetensorsFile.open(
      modelFixture("qwen3/adapter/adapter_model.safetensors"),
    );
    expect([...adapter.tensors.keys()].toSorted()).toEqual([...file.tensors.keys()].toSorted());
    for (const [name, { shape, data }] of adapter.tensors) {
      expect(shape).toEqual(file.tensors.get(name)?.shape);
      expect(data).toEqual(await file.readFloats(name));
    }
    await file.close();
  });

  it("reads an adapter that PEFT wrote for some matrices, with its copy of base weights", async () => {
    const adapter = await readAdapter(modelFixture("peft/partial"), qwen3);
    expect(adapter).toMatchObject({
      rank: 2,
      trainAttn: true,
      trainMlp: false,
      trainUnembed: true,
      baseModel: "tiny/qwen3",
    });
    expect(adapter.targets).toEqual(["q_proj", "v_proj", "lm_head"]);
    // Rank-stabilized: 6 / sqrt(2) in place of alpha / 2.
    expect(adapter.alpha / adapter.rank).toBeCloseTo(6 / Math.sqrt(2), 12);
  });

  it("fills matrices without an adapter with zeros in both factors", async () => {
    const adapter = await readAdapter(modelFixture("peft/partial"), qwen3);
    const { a, b } = loraTensorNames("model.layers.1.self_attn.k_proj");
    for (const name of [a, b]) {
      expect(adapter.tensors.get(name)?.data.every((value) => value === 0)).toBe(true);
    }
    const trained = adapter.tensors.get(loraTensorNames("model.layers.1.self_attn.q_proj").a);
    expect(trained?.data.some((value) => value !== 0)).toBe(true);
  });

  it("reads the unembedding under its name in archives of the Tinker service", async () => {
    const expected = await readAdapter(modelFixture("qwen3/adapter"), qwen3);
    const folder = await changedAdapter({
      config: { target_modules: ["q_proj", "unembed_tokens"] },
      edit: (tensors) => {
        for (const [name, tensor] of tensors) {
          tensors.set(name, { ...tensor, name: name.replace("lm_head", "model.unembed_tokens") });
        }
      },
    });
    const adapter = await readAdapter(folder, qwen3);
    expect(adapter.trainUnembed).toBe(true);
    expect(adapter.tensors).toEqual(expected.tensors);
    const twice = await refusalOf({
      edit: (tensors) => {
        const one = tensors.get(loraTensorNames("lm_head").a)!;
        const other = loraTensorNames("model.unembed_tokens").a;
        tensors.set(other, { ...one, name: other });
      },
    });
    expect(twice).toContain("twice");
  });

  it("reads an adapter of some layers", async () => {
    const folder = await changedAdapter({
      config: { layers_to_transform: [0, 2] },
      edit: (tensors) => {
        for (const name of tensors.keys()) if (name.includes(".layers.1.")) tensors.delete(name);
      },
    });
    const adapter = await readAdapter(folder, qwen3);
    const { b } = loraTensorNames("model.layers.1.mlp.up_proj");
    expect(adapter.tensors.get(b)?.data.every((value) => value === 0)).toBe(true);
  });

  it("reads targets as endings of paths and as a pattern", async () => {
    for (const targets of [["self_attn.q_proj", "model.layers.0.mlp.up_proj"], ".*_proj|lm_head"]) {
      const folder = await changedAdapter({ config: { target_modules: targets } });
      expect((await readAdapter(folder, qwen3)).targets).toHaveLength(8);
    }
  });

  it("widens adapters stored as 16-bit floats", async () => {
    const exact = await readAdapter(modelFixture("qwen3/adapter"), qwen3);
    const folder = await changedAdapter({
      edit: (tensors) => {
        for (const [name, tensor] of tensors) tensors.set(name, { ...tensor, dtype: "BF16" });
      },
    });
    const rounded = await readAdapter(folder, qwen3);
    const name = loraTensorNames("lm_head").a;
    const expected = exact.tensors.get(name)?.data ?? [];
    for (const [i, value] of (rounded.tensors.get(name)?.data ?? []).entries()) {
      expect(Math.abs(value - (expected[i] ?? NaN))).toBeLessThan(0.005 * Math.abs(value) + 1e-6);
    }
  });
});

describe("an adapter that cannot be represented is refused by name:", () => {
  const cases: [what: string, config: object, words: string[]][] = [
    ["another method", { peft_type: "IA3" }, ["peft_type", "IA3", "LORA"]],
    ["DoRA", { use_dora: true }, ["use_dora", "DoRA"]],
    ["biases", { bias: "lora_only" }, ["bias", "lora_only"]],
    ["biases of the adapter", { lora_bias: true }, ["lora_bias"]],
    ["whole modules", { modules_to_save: ["embed_tokens"] }, ["modules_to_save", "embed_tokens"]],
    ["several ranks", { rank_pattern: { q_proj: 8 } }, ["rank_pattern", "one rank"]],
    ["several alphas", { alpha_pattern: { q_proj: 8 } }, ["alpha_pattern", "one alpha"]],
    ["replicated layers", { layer_replication: [[0, 2]] }, ["layer_replication"]],
    ["a changed base", { init_lora_weights: "pissa" }, ["init_lora_weights", "pissa"]],
    [
      "trained embeddings",
      { target_modules: ["q_proj", "embed_tokens"] },
      ["embed_tokens", "q_proj, k_proj"],
    ],
    ["an unknown setting", { use_something_new: true }, ["use_something_new"]],
    ["another rank than the tensors have", { r: 8 }, ["[4, 64] instead of [8, 64]"]],
    ["no rank", { r: undefined }, ["r", "is missing"]],
    ["an impossible alpha", { lora_alpha: 0 }, ["lora_alpha"]],
  ];

  it.each(cases)("%s", async (_, config, words) => {
    const message = await refusalOf({ config });
    for (const word of words) expect(message).toContain(word);
  });

  it("tensors that are missing, too many or of another model, all in one error", async () => {
    const message = await refusalOf({
      edit: (tensors) => {
        tensors.delete(loraTensorNames("model.layers.0.mlp.up_proj").a);
        const { a } = loraTensorNames("model.layers.1.self_attn.q_proj");
        tensors.set(a, { name: a, shape: [4, 32], data: new Float32Array(128) });
        const odd = "base_model.model.model.layers.7.mlp.up_proj.lora_A.weight";
        tensors.set(odd, { name: odd, shape: [1], data: new Float32Array(1) });
      },
    });
    expect(message).toContain('layers.0.mlp.up_proj.lora_A.weight" is missing');
    expect(message).toContain(
      'layers.1.self_attn.q_proj.lora_A.weight" has shape [4, 32] instead of [4, 64]',
    );
    expect(message).toContain('layers.7.mlp.up_proj.lora_A.weight" is not an adapter of a matrix');
  });

  it("an adapter of another model", async () => {
    const message = await engineErrorOf("unsupported_adapter", () =>
      readAdapter(modelFixture("qwen3/adapter"), llama),
    );
    expect(message).toContain("[96, 4] instead of [64, 4]");
  });

  it("copies of base weights that were trained, or cannot be compared", async () => {
    const alone = await engineErrorOf("unsupported_adapter", () =>
      readAdapter(modelFixture("peft/partial"), { config: qwen3.config }),
    );
    expect(alone).toContain("lm_head.base_layer.weight");
    await cp(modelFixture("peft/partial"), inFolder("adapter"), { recursive: true });
    const weights = inFolder("adapter", "adapter_model.safetensors");
    const bytes = await readFile(weights);
    const file = await SafetensorsFile.open(weights);
    const { start = 0 } = file.tensors.get("base_model.model.lm_head.base_layer.weight") ?? {};
    await file.close();
    bytes.writeFloatLE(bytes.readFloatLE(start + 400) + 0.01, start + 400);
    await writeFile(weights, bytes);
    const trained = await engineErrorOf("unsupported_adapter", () =>
      readAdapter(inFolder("adapter"), qwen3),
    );
    expect(trained).toContain('differs from "lm_head.weight"');
  });

  it("adapters without tensors, in another format, or not there", async () => {
    const empty = await refusalOf({
      config: { target_modules: [] },
      edit: (tensors) => tensors.clear(),
    });
    expect(empty).toContain("no tensors");
    const folder = inFolder("adapter");
    await rename(`${folder}/adapter_model.safetensors`, `${folder}/adapter_model.bin`);
    const pickled = await engineErrorOf("unsupported_adapter", () => readAdapter(folder, qwen3));
    expect(pickled).toContain("adapter_model.bin");
    const absent = await engineErrorOf("file_missing", () => readAdapter(inFolder("no"), qwen3));
    expect(absent).toContain("adapter_config.json");
  });
});

describe("reading an adapter of whole matrices that have several parts", () => {
  const folder = modelFixture("qwen3_5/adapter_fused");
  const layer = "base_model.model.model.layers.0.linear_attn";
  let base: ModelFolder;
  beforeAll(async () => void (base = await openModelFolder(modelFixture("qwen3_5/model"))));
  afterAll(() => base.close());

  /** A copy of the adapter with other names. */
  async function renamed(namesOf: (name: string) => string[]): Promise<string> {
    const copy = inFolder("renamed");
    await cp(folder, copy, { recursive: true });
    const weights = `${copy}/adapter_model.safetensors`;
    const file = await SafetensorsFile.open(weights);
    const tensors: TensorToWrite[] = [];
    for (const { name, shape } of file.tensors.values()) {
      const data = await file.readFloats(name);
      for (const own of new Set(namesOf(name))) tensors.push({ name: own, shape, data });
    }
    await file.close();
    await writeSafetensors(weights, tensors);
    return copy;
  }

  it("gives each part the first factor and its rows of the second", async () => {
    const { tensors, samplingOnly, targets } = await readAdapter(folder, base);
    const file = await SafetensorsFile.open(`${folder}/adapter_model.safetensors`);
    const [a, b] = [
      await file.readFloats(`${layer}.in_proj_qkv.lora_A.weight`),
      await file.readFloats(`${layer}.in_proj_qkv.lora_B.weight`),
    ];
    await file.close();
    const parts = ["q", "k", "v"].map((part) => `${layer}.in_proj_${part}`);
    for (const part of parts) expect(tensors.get(`${part}.lora_A.weight`)?.data).toEqual(a);
    const rows = parts.flatMap((part) => [...(tensors.get(`${part}.lora_B.weight`)?.data ?? [])]);
    expect(rows).toEqual([...b]);
    expect(targets).toContain("in_proj_b");
    expect(samplingOnly).toMatch(/one adapter on in_proj_qkv/);
  });

  it("reads the names of a model with vision", async () => {
    const plain = await readAdapter(folder, base);
    for (const prefix of ["model.language_model.", "language_model.model."]) {
      const copy = await renamed((name) => [
        name.replace("base_model.model.model.", `base_model.model.${prefix}`),
      ]);
      expect(await readAdapter(copy, base)).toEqual(plain);
    }
  });

  it("refuses a matrix that is present whole and in parts", async () => {
    const copy = await renamed((name) => [name, name.replace("in_proj_qkv", "in_proj_q")]);
    const message = await engineErrorOf("unsupported_adapter", () => readAdapter(copy, base));
    expect(message).toMatch(/the same matrix twice: .*in_proj_q/);
  });

  it("refuses a first factor without its second", async () => {
    const copy = await renamed((name) => [name.replace(/in_proj_qkv.lora_B/, "in_proj_z.lora_B_")]);
    const message = await engineErrorOf("unsupported_adapter", () => readAdapter(copy, base));
    expect(message).toMatch(/in_proj_[qkv]\.lora_B\.weight" is missing/);
  });
});
