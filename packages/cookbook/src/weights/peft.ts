import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { writeFolderAtomically } from "@tinker-ts/hub/files";
import { AdapterFolder, type FloatTensor } from "./adapter.js";
import {
  familyOf,
  renameModule,
  expertProjection,
  type Family,
  type ModelConfig,
} from "./families.js";
import { encodeFloats } from "./floats.js";
import { rowsOf } from "./plan.js";
import { SafetensorsFile, writeSafetensors, type TensorToWrite } from "./safetensors.js";
import { WeightsError } from "./weights-error.js";

/** How an adapter is written for servers. */
export interface PeftOptions {
  /** A folder with an adapter, as checkpoints have it. */
  readonly adapter: string;
  /** The base model's folder: `config.json`, and safetensors files whose headers tell the names of modules. */
  readonly base: string;
  /** The folder to make. */
  readonly output: string;
  /** What `base_model_name_or_path` says. @default what the adapter says */
  readonly baseModel?: string | undefined;
  /**
   * Many versions of vLLM refuse adapters of the unembedding; left out, the model behaves as if that had not
   * been trained.
   * @default true
   */
  readonly includeUnembed?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What was written. */
export interface PeftResult {
  readonly targetModules: readonly string[];
  /** Modules of the adapter that are not in the result. */
  readonly leftOut: readonly string[];
}

/** A module as the server gets it. */
interface PeftModule {
  readonly module: string;
  readonly rank: number;
  readonly read: () => Promise<{ readonly a: FloatTensor; readonly b: FloatTensor }>;
  readonly inputs: number;
  readonly outputs: number;
}

/**
 * Writes an adapter in PEFT's form with the module names of the Hugging Face model, so that servers such as
 * vLLM load it: two-dimensional factors for each expert, and one pair where the model has several modules as one.
 */
export async function exportPeft(options: PeftOptions): Promise<PeftResult> {
  const { output, includeUnembed = true, signal } = options;
  if (await stat(output).catch(() => undefined)) {
    throw new WeightsError(`${output} exists already; choose a folder that does not`);
  }
  const config = JSON.parse(
    await readFile(path.join(options.base, "config.json"), "utf8"),
  ) as ModelConfig;
  const family = servedFamily(familyOf(config, await moduleNames(options.base)));
  const adapter = await AdapterFolder.open(options.adapter);
  try {
    const all = toModules(adapter, family);
    const modules = all.filter(({ module }) => includeUnembed || module !== family.head);
    const targetModules = [
      ...new Set(modules.map(({ module }) => module.split(".").at(-1)!)),
    ].toSorted();
    const baseModel = options.baseModel ?? adapter.baseModel ?? null;
    const text = JSON.stringify(peftConfig(adapter, modules, targetModules, baseModel), null, 2);
    await writeFolderAtomically(output, false, async (temporary) => {
      const file = path.join(temporary, "adapter_model.safetensors");
      await writeSafetensors(file, modules.flatMap(toTensors), signal);
      await writeFile(path.join(temporary, "adapter_config.json"), `${text}\n`);
    });
    const kept = new Set(modules);
    return {
      targetModules,
      leftOut: all.filter((module) => !kept.has(module)).map(({ module }) => module),
    };
  } finally {
    await adapter.close();
  }
}

/** Servers have other names than the files for some, and cannot take adapters of others. */
function servedFamily(family: Family): Family {
  if (family.name === "deepseek") {
    throw new WeightsError("servers take no adapters of DeepSeek-V3 models; merge it instead");
  }
  if (family.name !== "nemotron") return family;
  return { ...family, prefixes: [["model.lm_head", "lm_head"]] };
}

async function moduleNames(base: string): Promise<string[]> {
  const files = (await readdir(base)).filter((name) => name.endsWith(".safetensors"));
  const names: string[] = [];
  for (const file of files) {
    const opened = await SafetensorsFile.open(path.join(base, file));
    names.push(...opened.tensors.keys());
    await opened.close();
  }
  return names;
}

function toModules(adapter: AdapterFolder, family: Family): PeftModule[] {
  const modules = new Map<string, PeftModule>();
  const add = (module: PeftModule): void => {
    if (modules.has(module.module)) {
      throw new WeightsError(`two parts of the adapter are called ${module.module}`);
    }
    modules.set(module.module, module);
  };
  const joined = joinedGroups(adapter, family);
  for (const group of joined.values()) add(blockDiagonal(adapter, group));
  const inGroups = new Set([...joined.values()].flatMap(({ parts }) => parts));
  for (const pair of adapter.pairs) {
    if (inGroups.has(pair)) continue;
    const module = renameModule(pair.path, family);
    const [, experts, leaf] = /^(.*\.experts)\.([a-z]\w*)$/.exec(module) ?? [];
    const isStacked = experts !== undefined && pair.a.shape.length === 3;
    const count = isStacked ? Math.max(pair.a.shape[0]!, pair.b.shape[0]!) : 1;
    for (let expert = 0; expert < count; expert++) {
      add({
        module: isStacked ? `${experts}.${expert}.${expertProjection(family, leaf!)}` : module,
        rank: pair.a.shape.at(-2)!,
        inputs: pair.a.shape.at(-1)!,
        outputs: rowsOf(pair),
        read: async () => ({
          a: await adapter.readFactor(pair.a, expert),
          b: await adapter.readFactor(pair.b, expert),
        }),
      });
    }
  }
  return [...modules.values()];
}

type Pair = AdapterFolder["pairs"][number];

interface JoinedGroup {
  readonly module: string;
  readonly parts: readonly Pair[];
}

/** Parts of one module of the model, in the order of their rows. */
function joinedGroups(adapter: AdapterFolder, family: Family): Map<string, JoinedGroup> {
  const groups = new Map<string, JoinedGroup>();
  for (const [name, leaves] of Object.entries(family.joined)) {
    const isPart = ({ path: module }: Pair): boolean =>
      leaves.some((leaf) => module.endsWith(`.${leaf}`)) && !module.includes(".experts.");
    for (const pair of adapter.pairs.filter(isPart)) {
      const parent = pair.path.slice(0, pair.path.lastIndexOf("."));
      const module = renameModule(`${parent}.${name}`, family);
      const parts = leaves.map((leaf) =>
        adapter.pairs.find((other) => other.path === `${parent}.${leaf}`),
      );
      if (parts.some((part) => part === undefined)) {
        throw new WeightsError(`${parent}: ${leaves.join(", ")} go together, and one is missing`);
      }
      groups.set(module, { module, parts: parts as Pair[] });
    }
  }
  return groups;
}

/** One pair that does what several do on their own rows: A stacked, B a block for each. */
function blockDiagonal(adapter: AdapterFolder, { module, parts }: JoinedGroup): PeftModule {
  const inputs = parts[0]!.a.shape.at(-1)!;
  const ranks = parts.map(({ a }) => a.shape.at(-2)!);
  const rank = ranks.reduce((sum, own) => sum + own, 0);
  const outputs = parts.reduce((sum, part) => sum + rowsOf(part), 0);
  const read = async () => {
    const a = new Float32Array(rank * inputs);
    const b = new Float32Array(outputs * rank);
    let [row, column] = [0, 0];
    for (const [index, part] of parts.entries()) {
      a.set((await adapter.readFactor(part.a)).data, column * inputs);
      const { data } = await adapter.readFactor(part.b);
      const own = ranks[index]!;
      for (let output = 0; output < rowsOf(part); output++) {
        b.set(data.subarray(output * own, (output + 1) * own), (row + output) * rank + column);
      }
      row += rowsOf(part);
      column += own;
    }
    return { a: { shape: [rank, inputs], data: a }, b: { shape: [outputs, rank], data: b } };
  };
  return { module, rank, inputs, outputs, read };
}

function toTensors({ module, rank, inputs, outputs, read }: PeftModule): TensorToWrite[] {
  const tensor = (side: "A" | "B", shape: readonly [number, number]): TensorToWrite => ({
    name: `base_model.model.${module}.lora_${side}.weight`,
    dtype: "F32",
    shape,
    byteLength: shape[0] * shape[1] * 4,
    read: async () => encodeFloats("F32", (await read())[side === "A" ? "a" : "b"].data),
  });
  return [tensor("A", [rank, inputs]), tensor("B", [outputs, rank])];
}

function peftConfig(
  adapter: AdapterFolder,
  modules: readonly PeftModule[],
  targetModules: readonly string[],
  baseModel: string | null,
): object {
  const wider = modules.filter(({ rank }) => rank !== adapter.rank);
  const pattern = (value: (rank: number) => number): object =>
    Object.fromEntries(wider.map(({ module, rank }) => [module, value(rank)]));
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: baseModel,
    r: adapter.rank,
    lora_alpha: adapter.alpha,
    target_modules: targetModules,
    rank_pattern: pattern((rank) => rank),
    // Not rounded: the scale of a wider module must be that of its parts.
    alpha_pattern: pattern((rank) => (adapter.alpha * rank) / adapter.rank),
    bias: "none",
    lora_dropout: 0,
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    modules_to_save: null,
    auto_mapping: null,
  };
}
