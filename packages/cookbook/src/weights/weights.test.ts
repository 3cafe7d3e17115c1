import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  mergeAdapter as mergeKnownModel,
  openModelFolder,
  readAdapter,
  SafetensorsFile,
  writeSafetensors,
  type SafetensorsDtype,
} from "@tinker-ts/hub/weights";
import { seededRandom } from "../data/random.js";
import { mergeAdapter } from "./merge.js";
import { modelCard } from "./model-card.js";
import { exportPeft } from "./peft.js";
import { WeightsError } from "./weights-error.js";

type Shapes = Readonly<Record<string, readonly number[]>>;
type Tensors = Map<string, { readonly shape: readonly number[]; readonly data: Float32Array }>;

const rank = 2;
const alpha = 6;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-weights-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function randomTensors(shapes: Shapes, seed: number): Tensors {
  const random = seededRandom(seed);
  return new Map(
    Object.entries(shapes).map(([name, shape]) => {
      const length = shape.reduce((product, size) => product * size, 1);
      return [name, { shape, data: Float32Array.from({ length }, () => random() - 0.5) }];
    }),
  );
}

async function writeTensors(
  file: string,
  tensors: Tensors,
  dtype: SafetensorsDtype = "F32",
): Promise<void> {
  await writeSafetensors(
    file,
    [...tensors].map(([name, { shape, data }]) => {
      return { name, dtype, shape, data: dtype === "U8" ? new Uint8Array(data.length) : data };
    }),
  );
}

async function readTensors(file: string): Promise<Tensors> {
  const opened = await SafetensorsFile.open(file);
  const tensors: Tensors = new Map();
  for (const [name, entry] of opened.tensors) {
    tensors.set(name, { shape: entry.shape, data: await opened.readFloats(name) });
  }
  await opened.close();
  return tensors;
}

/** A base model and an adapter on the disk; factors by module as [outputs, inputs], or [experts, outputs, inputs, ...]. */
async function place(
  config: object,
  base: Shapes,
  modules: Readonly<Record<string, { a: readonly number[]; b: readonly number[] }>>,
  dtype: SafetensorsDtype = "F32",
): Promise<{ base: Tensors; adapter: Tensors }> {
  const baseTensors = randomTensors(base, 1);
  const factors = Object.fromEntries(
    Object.entries(modules).flatMap(([module, { a, b }]) => [
      [`base_model.model.${module}.lora_A.weight`, a],
      [`base_model.model.${module}.lora_B.weight`, b],
    ]),
  );
  const adapter = randomTensors(factors, 2);
  mkdirSync(path.join(folder, "base"));
  mkdirSync(path.join(folder, "adapter"));
  writeFileSync(path.join(folder, "base/config.json"), JSON.stringify(config));
  writeFileSync(path.join(folder, "base/tokenizer.json"), "{}");
  await writeTensors(path.join(folder, "base/model.safetensors"), baseTensors, dtype);
  writeFileSync(
    path.join(folder, "adapter/adapter_config.json"),
    JSON.stringify({ r: rank, lora_alpha: alpha, base_model_name_or_path: "acme/base" }),
  );
  await writeTensors(path.join(folder, "adapter/adapter_model.safetensors"), adapter);
  return { base: baseTensors, adapter };
}

const options = () => ({
  base: path.join(folder, "base"),
  adapter: path.join(folder, "adapter"),
  output: path.join(folder, "merged"),
});
const merged = async (): Promise<Tensors> => {
  await mergeAdapter(options());
  return readTensors(path.join(folder, "merged/model.safetensors"));
};

/** alpha / rank * B A of a module, of one expert where there are some: [outputs][inputs]. */
function delta(adapter: Tensors, module: string, expert = 0): number[][] {
  const part = (side: string) => {
    const { shape, data } = adapter.get(`base_model.model.${module}.lora_${side}.weight`)!;
    const [rows, columns] = shape.slice(-2) as [number, number];
    const index = shape.length === 3 && shape[0]! > 1 ? expert : 0;
    return {
      rows,
      columns,
      at: (row: number, column: number) => data[index * rows * columns + row * columns + column]!,
    };
  };
  const [a, b] = [part("A"), part("B")];
  return Array.from({ length: b.rows }, (_, output) =>
    Array.from({ length: a.columns }, (_unused, input) => {
      let sum = 0;
      for (let k = 0; k < a.rows; k++) sum += b.at(output, k) * a.at(k, input);
      return (alpha / rank) * sum;
    }),
  );
}

/** Checks that a tensor changed by what `change` says for each of its indices, and by nothing else. */
function expectChange(
  before: Tensors,
  after: Tensors,
  name: string,
  change: (indices: number[]) => number,
  from = name,
): void {
  const { shape, data } = before.get(from)!;
  for (const [index, value] of data.entries()) {
    const indices: number[] = [];
    let rest = index;
    for (const size of shape.toReversed()) {
      indices.unshift(rest % size);
      rest = Math.floor(rest / size);
    }
    expect(after.get(name)!.data[index], `${name}[${indices.join(",")}]`).toBeCloseTo(
      value + change(indices),
      5,
    );
  }
}

const fixtures = path.resolve(import.meta.dirname, "../../../engine/test/fixtures");

/** A model of the engine's fixtures as files have it inside another one, with its adapter. */
async function wrapMinistral(prefix: string, head: string): Promise<string> {
  const base = path.join(folder, "wrapped");
  mkdirSync(base);
  const model = path.join(fixtures, "ministral3/model");
  const text = JSON.parse(readFileSync(path.join(model, "config.json"), "utf8")) as {
    tie_word_embeddings: boolean;
  };
  const config = {
    architectures: ["Mistral3ForConditionalGeneration"],
    model_type: "mistral3",
    text_config: { ...text, architectures: undefined },
    tie_word_embeddings: text.tie_word_embeddings,
  };
  writeFileSync(path.join(base, "config.json"), JSON.stringify(config));
  const tensors = await readTensors(path.join(model, "model.safetensors"));
  const renamed = [...tensors].map(([name, tensor]) => {
    const inside = name === "lm_head.weight" ? head : name.replace(/^model\./, prefix);
    return [inside, tensor] as const;
  });
  await writeTensors(path.join(base, "model.safetensors"), new Map(renamed));
  return base;
}

const inFixture = (kind: string) => () => Promise.resolve(path.join(fixtures, `${kind}/model`));

/** Models of the engine, with the names that modules of transformers have for tensors of their files. */
const knownModels: [
  string,
  kind: string,
  base: () => Promise<string>,
  moduleOf?: (tensor: string) => string,
][] = [
  ["Qwen3.5 inside a model with vision", "qwen3_5_vl", inFixture("qwen3_5_vl")],
  ["Qwen3.5 as text alone", "qwen3_5", inFixture("qwen3_5")],
  ["Granite 4 H", "granite_hybrid", inFixture("granite_hybrid")],
  ["LFM2", "lfm2", inFixture("lfm2")],
  [
    "Ministral 3, as transformers saves it",
    "ministral3",
    () => wrapMinistral("language_model.model.", "language_model.lm_head.weight"),
    (tensor) =>
      tensor
        .replace("language_model.model.", "model.language_model.")
        .replace("language_model.lm_head", "lm_head"),
  ],
  [
    "Ministral 3 with the names of its modules",
    "ministral3",
    () => wrapMinistral("model.language_model.", "lm_head.weight"),
  ],
];

describe.each(knownModels)("%s", (_, kind, makeBase, moduleOf = (name) => name) => {
  it("is merged and exported as the engine merges it", async () => {
    const [base, adapter] = [await makeBase(), path.join(fixtures, `${kind}/adapter`)];
    const [known, output, peft] = ["known", "merged", "peft"].map((name) =>
      path.join(folder, name),
    ) as [string, string, string];
    const model = await openModelFolder(base);
    const read = await readAdapter(adapter, model);
    await model.close();
    await mergeKnownModel({ base, adapter: read, output: known });
    await mergeAdapter({ base, adapter, output });
    const wanted = await readTensors(path.join(known, "model.safetensors"));
    const ours = await readTensors(path.join(output, "model.safetensors"));
    expect([...ours.keys()].toSorted()).toEqual([...wanted.keys()].toSorted());
    for (const [name, { data }] of wanted) expect(ours.get(name)?.data, name).toEqual(data);
    expect(readFileSync(path.join(output, "config.json"), "utf8")).toBe(
      readFileSync(path.join(known, "config.json"), "utf8"),
    );

    await exportPeft({ base, adapter, output: peft });
    const factors = await readTensors(path.join(peft, "adapter_model.safetensors"));
    const config = readConfig(peft);
    const before = await readTensors(path.join(base, "model.safetensors"));
    const embedding = [...before.keys()].find((name) => name.endsWith("embed_tokens.weight"));
    let used = 0;
    for (const [name, { data, shape }] of wanted) {
      const module = moduleOf(name).replace(/\.weight$/, "");
      const a = factors.get(`base_model.model.${module}.lora_A.weight`);
      const b = factors.get(`base_model.model.${module}.lora_B.weight`);
      const start = (before.get(name) ?? before.get(embedding ?? ""))?.data;
      if (!a || !b) {
        expect(data, name).toEqual(start);
        continue;
      }
      used += 2;
      const r = config.rank_pattern[module] ?? config.r;
      const scale = (config.alpha_pattern[module] ?? config.lora_alpha) / r;
      const columns = shape[1] ?? 0;
      for (const [index, value] of data.entries()) {
        const row = Math.floor(index / columns);
        let sum = 0;
        for (let k = 0; k < r; k++) {
          sum += b.data[row * r + k]! * a.data[k * columns + (index % columns)]!;
        }
        if (Math.abs(start![index]! + scale * sum - value) > 1e-5) expect(value, name).toBe(sum);
      }
    }
    expect(used).toBe(factors.size);
  });
});

interface PeftJson {
  readonly r: number;
  readonly lora_alpha: number;
  readonly rank_pattern: Record<string, number>;
  readonly alpha_pattern: Record<string, number>;
}

function readConfig(adapter: string): PeftJson {
  return JSON.parse(readFileSync(path.join(adapter, "adapter_config.json"), "utf8")) as PeftJson;
}

describe("merging", () => {
  it("equals PEFT's own merge", async () => {
    const output = path.join(folder, "merged");
    await mergeAdapter({
      base: path.join(fixtures, "qwen3/model"),
      adapter: path.join(fixtures, "qwen3/adapter"),
      output,
    });
    const ours = await readTensors(path.join(output, "model.safetensors"));
    const theirs = await readTensors(path.join(fixtures, "peft/merged.safetensors"));
    for (const [name, { data }] of theirs) {
      const own = ours.get(name)!.data;
      for (const [index, value] of data.entries())
        expect(Math.abs(own[index]! - value), name).toBeLessThan(2e-6);
    }
    expect(existsSync(path.join(output, "tokenizer.json"))).toBe(true);
  });

  it("unties embeddings, because the input side was never trained", async () => {
    const { base, adapter } = await place(
      { tie_word_embeddings: true },
      { "model.embed_tokens.weight": [7, 4], "model.norm.weight": [4] },
      { "model.unembed_tokens": { a: [rank, 4], b: [7, rank] } },
    );
    const after = await merged();
    const change = delta(adapter, "model.unembed_tokens");
    expectChange(base, after, "model.embed_tokens.weight", () => 0);
    expectChange(base, after, "model.norm.weight", () => 0);
    expectChange(
      base,
      after,
      "lm_head.weight",
      ([row, column]) => change[row!]![column!]!,
      "model.embed_tokens.weight",
    );
    expect(JSON.parse(readFileSync(path.join(folder, "merged/config.json"), "utf8"))).toEqual({
      tie_word_embeddings: false,
    });
  });

  it.each([
    ["both by expert", [3, rank, 4], [3, 5, rank]],
    ["the input's shared", [1, rank, 4], [3, 5, rank]],
    ["the output's shared", [3, rank, 4], [1, 5, rank]],
  ])("reaches experts that are tensors of their own, with factors %s", async (_, a, b) => {
    const names = [0, 1, 2].map(
      (expert) => `model.layers.0.mlp.experts.${expert}.gate_proj.weight`,
    );
    const { base, adapter } = await place(
      { model_type: "qwen3_moe" },
      Object.fromEntries(names.map((name) => [name, [5, 4]])),
      { "model.layers.0.mlp.experts.w1": { a, b } },
    );
    const after = await merged();
    for (const [expert, name] of names.entries()) {
      const change = delta(adapter, "model.layers.0.mlp.experts.w1", expert);
      expectChange(base, after, name, ([row, column]) => change[row!]![column!]!);
    }
  });

  const fusedModules = {
    "model.layers.0.mlp.experts.w1": { a: [2, rank, 4], b: [2, 3, rank] },
    "model.layers.0.mlp.experts.w3": { a: [2, rank, 4], b: [2, 3, rank] },
    "model.layers.0.mlp.experts.w2": { a: [2, rank, 3], b: [2, 4, rank] },
  };
  it.each<
    [
      string,
      object,
      readonly number[],
      readonly number[],
      (row: number, column: number) => [output: number, input: number],
    ]
  >([
    [
      "outputs first, halves",
      { model_type: "qwen3_moe" },
      [2, 6, 4],
      [2, 4, 3],
      (row, column) => [row, column],
    ],
    [
      "inputs first, halves",
      { model_type: "qwen3_vl_moe" },
      [2, 4, 6],
      [2, 3, 4],
      (row, column) => [column, row],
    ],
    [
      "inputs first, by turns",
      { architectures: ["GptOssForCausalLM"] },
      [2, 4, 6],
      [2, 3, 4],
      (row, column) => [column, row],
    ],
  ])("reaches experts that are one tensor: %s", async (layout, config, gateUp, down, place2d) => {
    const [gateUpName, downName] = [
      "model.layers.0.mlp.experts.gate_up_proj",
      "model.layers.0.mlp.experts.down_proj",
    ];
    const { base, adapter } = await place(
      config,
      { [gateUpName]: gateUp, [downName]: down },
      fusedModules,
    );
    const after = await merged();
    expectChange(base, after, gateUpName, ([expert, row, column]) => {
      const [output, input] = place2d(row!, column!);
      const isUp = layout.includes("turns") ? output % 2 === 1 : output >= 3;
      const own = layout.includes("turns") ? Math.floor(output / 2) : output % 3;
      return delta(adapter, `model.layers.0.mlp.experts.${isUp ? "w3" : "w1"}`, expert)[own]![
        input
      ]!;
    });
    expectChange(base, after, downName, ([expert, row, column]) => {
      const [output, input] = place2d(row!, column!);
      return delta(adapter, "model.layers.0.mlp.experts.w2", expert)[output]![input]!;
    });
  });

  it("takes the orientation of square experts from the family, and refuses to guess", async () => {
    const name = "model.layers.0.mlp.experts.down_proj";
    const modules = { "model.layers.0.mlp.experts.w2": { a: [2, rank, 4], b: [2, 4, rank] } };
    const { base, adapter } = await place(
      { architectures: ["GptOssForCausalLM"] },
      { [name]: [2, 4, 4] },
      modules,
    );
    expectChange(
      base,
      await merged(),
      name,
      ([expert, row, column]) =>
        delta(adapter, "model.layers.0.mlp.experts.w2", expert)[column!]![row!]!,
    );
    writeFileSync(path.join(folder, "base/config.json"), '{"model_type": "unknown_moe"}');
    await expect(
      mergeAdapter({ ...options(), output: path.join(folder, "other") }),
    ).rejects.toThrow("is square");
  });

  it("puts parts of fused modules into their rows, after the family's prefix", async () => {
    const target = "model.language_model.layers.0.linear_attn.in_proj_qkv.weight";
    const parent = "model.layers.0.linear_attn";
    const { base, adapter } = await place(
      { model_type: "qwen3_5" },
      { [target]: [9, 4] },
      {
        [`${parent}.in_proj_v`]: { a: [rank, 4], b: [4, rank] },
        [`${parent}.in_proj_q`]: { a: [rank, 4], b: [3, rank] },
        [`${parent}.in_proj_k`]: { a: [rank, 4], b: [2, rank] },
      },
    );
    const rows = ["q", "k", "v"].flatMap((part) => delta(adapter, `${parent}.in_proj_${part}`));
    expectChange(base, await merged(), target, ([row, column]) => rows[row!]![column!]!);
  });

  it.each<[string, object, string, string]>([
    [
      "Kimi K2.5",
      { model_type: "kimi_k25" },
      "model.layers.0.model.q_proj",
      "language_model.model.layers.0.model.q_proj",
    ],
    [
      "Kimi K2.5's head",
      { model_type: "kimi_k25" },
      "model.unembed_tokens",
      "language_model.lm_head",
    ],
    [
      "Nemotron",
      { architectures: ["NemotronHForCausalLM"] },
      "model.layers.0.mixer.q_proj",
      "backbone.layers.0.mixer.q_proj",
    ],
    [
      "gpt-oss",
      { architectures: ["GptOssForCausalLM"] },
      "model.layers.0.attn.q_proj",
      "model.layers.0.self_attn.q_proj",
    ],
    [
      "a language model inside another",
      { model_type: "x" },
      "model.layers.0.q_proj",
      "model.language_model.layers.0.q_proj",
    ],
  ])("maps the names of %s, and renames prefixes only", async (_, config, module, target) => {
    const { base, adapter } = await place(
      config,
      { [`${target}.weight`]: [5, 4] },
      { [module]: { a: [rank, 4], b: [5, rank] } },
    );
    const change = delta(adapter, module);
    expectChange(
      base,
      await merged(),
      `${target}.weight`,
      ([row, column]) => change[row!]![column!]!,
    );
  });

  it("keeps types, and rounds to the nearest", async () => {
    const { adapter } = await place(
      {},
      { "model.q.weight": [5, 4] },
      { "model.q": { a: [rank, 4], b: [5, rank] } },
      "BF16",
    );
    const before = await readTensors(path.join(folder, "base/model.safetensors"));
    const after = await merged();
    const change = delta(adapter, "model.q").flat();
    const exact = before.get("model.q.weight")!.data.map((value, index) => value + change[index]!);
    for (const [index, value] of after.get("model.q.weight")!.data.entries()) {
      // Half of the distance between two numbers of this type.
      expect(Math.abs(value - exact[index]!)).toBeLessThanOrEqual(Math.abs(value) / 256);
    }
    const file = await SafetensorsFile.open(path.join(folder, "merged/model.safetensors"));
    expect(file.tensors.get("model.q.weight")?.dtype).toBe("BF16");
    await file.close();
  });

  it.each<[string, Shapes, Record<string, { a: number[]; b: number[] }>, SafetensorsDtype, string]>(
    [
      [
        "a module that the model does not have",
        { "model.q.weight": [5, 4] },
        { "model.k": { a: [rank, 4], b: [5, rank] } },
        "F32",
        "the base model has no model.k.weight",
      ],
      [
        "a shape that does not fit",
        { "model.q.weight": [5, 4] },
        { "model.q": { a: [rank, 3], b: [5, rank] } },
        "F32",
        "changes 5 x 3, but model.q.weight is 5 x 4",
      ],
      [
        "quantized weights",
        { "model.q.weight": [5, 4] },
        { "model.q": { a: [rank, 4], b: [5, rank] } },
        "U8",
        "weights are of type U8",
      ],
      [
        "two parts for one place",
        { "lm_head.weight": [5, 4] },
        {
          lm_head: { a: [rank, 4], b: [5, rank] },
          "model.unembed_tokens": { a: [rank, 4], b: [5, rank] },
        },
        "F32",
        "two parts of the adapter go to one place",
      ],
      [
        "experts that do not go together",
        { "model.experts.0.gate_proj.weight": [5, 4] },
        { "model.experts.w1": { a: [2, rank, 4], b: [3, 5, rank] } },
        "F32",
        "2 and 3 experts do not go together",
      ],
    ],
  )("%s is refused before anything is written", async (_, base, modules, dtype, message) => {
    await place({}, base, modules, dtype);
    await expect(mergeAdapter(options())).rejects.toThrow(message);
    expect(readdirSync(folder).toSorted()).toEqual(["adapter", "base"]);
  });

  it("copies tensors of other types byte by byte", async () => {
    await place({}, { "model.q.weight": [5, 4] }, { "model.q": { a: [rank, 4], b: [5, rank] } });
    const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
    await writeSafetensors(path.join(folder, "base/more.safetensors"), [
      { name: "model.scales", dtype: "I64", shape: [1], data: bytes },
    ]);
    await mergeAdapter(options());
    const file = await SafetensorsFile.open(path.join(folder, "merged/more.safetensors"));
    expect(file.tensors.get("model.scales")).toMatchObject({ dtype: "I64", shape: [1] });
    expect(await file.readBytes("model.scales")).toEqual(bytes);
    await file.close();
  });

  it.each([
    ["use_dora", true],
    ["rank_pattern", { "model.q": 4 }],
    ["modules_to_save", ["lm_head"]],
  ])("refuses adapters with %s, which changes the meaning of the factors", async (field, value) => {
    await place({}, { "model.q.weight": [5, 4] }, { "model.q": { a: [rank, 4], b: [5, rank] } });
    const file = path.join(folder, "adapter/adapter_config.json");
    writeFileSync(file, JSON.stringify({ r: rank, lora_alpha: alpha, [field]: value }));
    const merging = mergeAdapter(options());
    await expect(merging).rejects.toBeInstanceOf(WeightsError);
    await expect(merging).rejects.toThrow(`"${field}" of ${file}`);
  });

  it("scales rank-stabilized adapters by the root of the rank", async () => {
    const { base, adapter } = await place(
      {},
      { "model.q.weight": [5, 4] },
      { "model.q": { a: [rank, 4], b: [5, rank] } },
    );
    const config = { r: rank, lora_alpha: alpha, use_rslora: true };
    writeFileSync(path.join(folder, "adapter/adapter_config.json"), JSON.stringify(config));
    const change = delta(adapter, "model.q");
    expectChange(
      base,
      await merged(),
      "model.q.weight",
      ([row, column]) => Math.sqrt(rank) * change[row!]![column!]!,
    );
  });

  it("reports a damaged file as WeightsError", async () => {
    await place({}, { "model.q.weight": [5, 4] }, { "model.q": { a: [rank, 4], b: [5, rank] } });
    const file = path.join(folder, "base/model.safetensors");
    writeFileSync(file, readFileSync(file).subarray(0, -1));
    const merging = mergeAdapter(options());
    await expect(merging).rejects.toBeInstanceOf(WeightsError);
    await expect(merging).rejects.toThrow("is not a valid safetensors file: it is truncated");
  });

  it("writes an index for several files, and never into an existing folder", async () => {
    await place({}, { "model.q.weight": [5, 4] }, { "model.q": { a: [rank, 4], b: [5, rank] } });
    await writeTensors(
      path.join(folder, "base/more.safetensors"),
      randomTensors({ "model.norm.weight": [4] }, 3),
    );
    await mergeAdapter(options());
    expect(
      JSON.parse(readFileSync(path.join(folder, "merged/model.safetensors.index.json"), "utf8")),
    ).toEqual({
      metadata: { total_size: 4 * 24 },
      weight_map: {
        "model.norm.weight": "more.safetensors",
        "model.q.weight": "model.safetensors",
      },
    });
    await expect(mergeAdapter(options())).rejects.toThrow("exists already");
  });
});

describe("an adapter for servers", () => {
  const exported = async (change = {}) => {
    const output = path.join(folder, "peft");
    const result = await exportPeft({ ...options(), output, ...change });
    return {
      result,
      config: readConfig(output),
      tensors: await readTensors(path.join(output, "adapter_model.safetensors")),
    };
  };

  it("applied like in PEFT gives the merged weights", async () => {
    const parent = "model.layers.0.linear_attn";
    const experts = "model.language_model.layers.0.mlp.experts";
    const { base } = await place(
      { model_type: "qwen3_5_moe" },
      {
        "model.language_model.layers.0.linear_attn.in_proj_qkv.weight": [9, 4],
        "model.language_model.layers.0.self_attn.q_proj.weight": [5, 4],
        ...Object.fromEntries(
          [0, 1].map((expert) => [`${experts}.${expert}.down_proj.weight`, [4, 3]]),
        ),
        "lm_head.weight": [7, 4],
      },
      {
        [`${parent}.in_proj_q`]: { a: [rank, 4], b: [3, rank] },
        [`${parent}.in_proj_k`]: { a: [rank, 4], b: [2, rank] },
        [`${parent}.in_proj_v`]: { a: [rank, 4], b: [4, rank] },
        "model.layers.0.self_attn.q_proj": { a: [rank, 4], b: [5, rank] },
        "model.layers.0.mlp.experts.w2": { a: [1, rank, 3], b: [2, 4, rank] },
        "model.unembed_tokens": { a: [rank, 4], b: [7, rank] },
      },
    );
    const after = await merged();
    const { config, tensors, result } = await exported();
    expect(result).toEqual({
      targetModules: ["down_proj", "in_proj_qkv", "lm_head", "q_proj"],
      leftOut: [],
    });
    expect(config).toMatchObject({
      peft_type: "LORA",
      base_model_name_or_path: "acme/base",
      rank_pattern: { "model.language_model.layers.0.linear_attn.in_proj_qkv": 6 },
      alpha_pattern: { "model.language_model.layers.0.linear_attn.in_proj_qkv": 18 },
    });
    for (const name of base.keys()) {
      const module = name.replace(/\.weight$/, "");
      const a = tensors.get(`base_model.model.${module}.lora_A.weight`)!;
      const b = tensors.get(`base_model.model.${module}.lora_B.weight`)!;
      const r = config.rank_pattern[module] ?? config.r;
      const scale = (config.alpha_pattern[module] ?? config.lora_alpha) / r;
      expectChange(base, after, name, ([row, column]) => {
        let sum = 0;
        for (let k = 0; k < r; k++)
          sum += b.data[row! * r + k]! * a.data[k * a.shape[1]! + column!]!;
        return scale * sum;
      });
    }
  });

  it("can leave the unembedding out, with a note", async () => {
    await place(
      {},
      { "model.q.weight": [5, 4], "lm_head.weight": [7, 4] },
      { "model.q": { a: [rank, 4], b: [5, rank] }, lm_head: { a: [rank, 4], b: [7, rank] } },
    );
    const { result, tensors } = await exported({ includeUnembed: false });
    expect(result).toEqual({ targetModules: ["q"], leftOut: ["lm_head"] });
    expect([...tensors.keys()].some((name) => name.includes("lm_head"))).toBe(false);
  });

  it("needs no weights of the base model, only its configuration", async () => {
    await place({}, { "model.q.weight": [5, 4] }, { "model.q": { a: [rank, 4], b: [5, rank] } });
    rmSync(path.join(folder, "base/model.safetensors"));
    expect((await exported()).result.targetModules).toEqual(["q"]);
  });

  it("is refused for models without adapter support in servers", async () => {
    await place(
      { model_type: "deepseek_v3" },
      { "model.q.weight": [5, 4] },
      { "model.q": { a: [rank, 4], b: [5, rank] } },
    );
    await expect(exported()).rejects.toThrow("merge it instead");
    expect(existsSync(path.join(folder, "peft"))).toBe(false);
  });
});

it("a model card describes the model, its training and its evaluation", () => {
  const card = modelCard({
    name: "garden",
    baseModel: "Qwen/Qwen3-8B",
    kind: "adapter",
    license: "apache-2.0",
    config: { lora_rank: 32, seed: 1 },
    metrics: { "test/nll": 0.08477 },
  });
  expect(card).toContain("base_model: Qwen/Qwen3-8B\nlicense: apache-2.0\nlibrary_name: peft");
  expect(card).toContain("| lora_rank | 32 |");
  expect(card).toContain("| test/nll | 0.08477 |");
  expect(card).not.toContain("seed");
});
