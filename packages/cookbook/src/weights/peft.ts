import { writeFile } from "node:fs/promises";
import path from "node:path";
import {
  adapterConfigFile,
  adapterWeightsFile,
  formatPeftConfig,
  loraTensorNames,
  readJsonObject,
  writeFolderAtomically,
  writeSafetensors,
  type NamedTensor,
  type TensorToWrite,
} from "@tinker-ts/hub/weights";
import { AdapterFolder } from "./adapter.js";
import { expertProjection, familyOf, renameModule, servedFamily, type Family } from "./families.js";
import { openShards } from "./merge.js";
import { rowsOf } from "./plan.js";
import { asWeightsError, refuseExisting, WeightsError } from "./weights-error.js";

/** How an adapter is written for servers. */
export interface PeftOptions {
  /** A folder with an adapter, as checkpoints have it. */
  readonly adapter: string;
  /** The base model's folder: `config.json`, and safetensors files with the names of modules in their headers. */
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
  /** Replaces an existing folder. @default false */
  readonly overwrite?: boolean | undefined;
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
  readonly read: () => Promise<{ readonly a: NamedTensor; readonly b: NamedTensor }>;
  readonly inputs: number;
  readonly outputs: number;
}

/**
 * Writes an adapter in PEFT's form with the module names of the Hugging Face model, so that servers such as
 * vLLM load it: two-dimensional factors for each expert, and one pair where the model has several modules as one.
 */
export async function exportPeft(options: PeftOptions): Promise<PeftResult> {
  if (options.overwrite !== true) await refuseExisting(options.output);
  return asWeightsError(async () => {
    const family = await readFamily(options.base, options.signal);
    const adapter = await AdapterFolder.open(options.adapter);
    try {
      return await writePeft(options, adapter, family);
    } finally {
      await adapter.close();
    }
  });
}

async function writePeft(
  options: PeftOptions,
  adapter: AdapterFolder,
  family: Family,
): Promise<PeftResult> {
  const { output, includeUnembed = true, overwrite = false, signal } = options;
  const all = toModules(adapter, family);
  const modules = all.filter(({ module }) => includeUnembed || module !== family.head);
  const targetModules = [
    ...new Set(modules.map(({ module }) => module.split(".").at(-1)!)),
  ].toSorted();
  const baseModel = options.baseModel ?? adapter.baseModel;
  const text = JSON.stringify(peftConfig(adapter, modules, targetModules, baseModel), null, 2);
  await writeFolderAtomically(output, overwrite, async (temporary) => {
    await writeSafetensors(path.join(temporary, adapterWeightsFile), modules.flatMap(toTensors), {
      metadata: { format: "pt" },
      ...(signal ? { signal } : {}),
    });
    await writeFile(path.join(temporary, adapterConfigFile), `${text}\n`);
  });
  const kept = new Set(modules);
  return {
    targetModules,
    leftOut: all.filter((module) => !kept.has(module)).map(({ module }) => module),
  };
}

/** The family of a model's folder, with the names that servers use. */
async function readFamily(base: string, signal: AbortSignal | undefined): Promise<Family> {
  const config = await readJsonObject(path.join(base, "config.json"), signal);
  const shards = await openShards(base, signal);
  await shards.close();
  return servedFamily(familyOf(config, shards.fileOf.keys()));
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
  const names = loraTensorNames(module);
  return [
    { name: names.a, shape: [rank, inputs], data: async () => (await read()).a.data },
    { name: names.b, shape: [outputs, rank], data: async () => (await read()).b.data },
  ];
}

function peftConfig(
  adapter: AdapterFolder,
  modules: readonly PeftModule[],
  targetModules: readonly string[],
  baseModel: string | null,
): object {
  const wider = modules.filter(({ rank }) => rank !== adapter.rank);
  const pattern = (value: (rank: number) => number): object =>
    Object.fromEntries(wider.map(({ module, rank: wide }) => [module, value(wide)]));
  const { rank, alpha } = adapter;
  return {
    ...formatPeftConfig({ rank, alpha, baseModel, targets: targetModules }),
    rank_pattern: pattern((wide) => wide),
    // Not rounded: the scale of a wider module must be that of its parts.
    alpha_pattern: pattern((wide) => (alpha * wide) / rank),
  };
}
