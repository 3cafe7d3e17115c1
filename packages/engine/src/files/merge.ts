import { copyFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { weightIndexFile, type JsonObject } from "@tinker-ts/hub/files";
import { EngineError } from "../errors.js";
import { storedElementBytes } from "./float-formats.js";
import { loraModules, type LoraModule } from "./lora-modules.js";
import { addLowRank } from "./low-rank.js";
import { openModelFolder } from "./model-folder.js";
import { loraTensorNames, type LoraAdapter } from "./peft/adapter.js";
import type { SafetensorsEntry } from "./safetensors-header.js";
import { writeSafetensors, type TensorToWrite } from "./safetensors-writer.js";
import { isStoredDtype, type SafetensorsFile } from "./safetensors.js";
import { elementCount } from "./shape.js";
import { readJsonObject, writeFolderAtomically } from "./shared-helpers.js";
import { embeddingName, unembeddingName } from "./tensor-names.js";
import { openWeightShards, type WeightShards } from "./weight-shards.js";
import type { StoredDtype } from "./weight-source.js";

/** How far a merge is. */
export interface MergeProgress {
  /** The tensor that was written last. */
  readonly tensor: string;
  readonly tensors: number;
  readonly totalTensors: number;
}

/** What is merged into what. */
export interface MergeOptions {
  /** A model folder. */
  readonly base: string;
  readonly adapter: LoraAdapter;
  /** The folder to write. */
  readonly output: string;
  /** Type of the written weights; "keep" leaves each tensor in the base's type. @default "keep" */
  readonly dtype?: "keep" | StoredDtype;
  /** Replaces an existing folder. @default false */
  readonly overwrite?: boolean;
  readonly onProgress?: (progress: MergeProgress) => void;
  readonly signal?: AbortSignal;
}

/**
 * Writes the model that an adapter makes of its base, as a Hugging Face folder that needs no adapter.
 *
 * Weights pass through one tensor at a time and keep their files; everything that no adapter touches
 * is copied byte for byte. Where embeddings are tied and the unembedding is adapted, the two part.
 */
export async function mergeAdapter(options: MergeOptions): Promise<void> {
  const { base, adapter, signal } = options;
  checkOptions(options);
  const model = await openModelFolder(base, signal);
  await model.close();
  const modules = loraModules(model.config, adapter.targets);
  checkFit(adapter, modules);
  const untie = model.config.tiedEmbeddings && modules.some(({ target }) => target === "lm_head");
  const shards = await openWeightShards(base, signal);
  try {
    await writeFolderAtomically(options.output, options.overwrite ?? false, async (folder) => {
      const plan = planFiles(shards, untie);
      await writeWeights(
        folder,
        plan,
        new Map(modules.map((m) => [`${m.path}.weight`, m])),
        options,
      );
      if (shards.files.size > 1) await writeIndex(folder, plan, options.dtype ?? "keep");
      await writeConfig(folder, options, untie);
      await copyCompanions(base, folder);
    });
  } finally {
    await shards.close();
  }
}

/** A tensor to be written under `name`, made from what `file` stores as `entry`. */
interface PlannedTensor {
  readonly name: string;
  readonly file: SafetensorsFile;
  readonly entry: SafetensorsEntry & { readonly dtype: StoredDtype };
}

type Plan = ReadonlyMap<string, readonly PlannedTensor[]>;

function planFiles(shards: WeightShards, untie: boolean): Plan {
  const plan = new Map<string, PlannedTensor[]>();
  for (const [fileName, file] of shards.files) {
    const tensors: PlannedTensor[] = [];
    for (const entry of file.tensors.values()) {
      const { name, dtype } = entry;
      if (!isStoredDtype(dtype) || shards.fileOf.get(name) !== file) continue;
      const planned = { name, file, entry: { ...entry, dtype } };
      tensors.push(planned);
      const copies = untie && name === embeddingName && !shards.fileOf.has(unembeddingName);
      if (copies) tensors.push({ ...planned, name: unembeddingName });
    }
    plan.set(fileName, tensors);
  }
  return plan;
}

async function writeWeights(
  folder: string,
  plan: Plan,
  modules: ReadonlyMap<string, LoraModule>,
  options: MergeOptions,
): Promise<void> {
  const { adapter, signal } = options;
  const totalTensors = [...plan.values()].reduce((sum, tensors) => sum + tensors.length, 0);
  let done = 0;
  for (const [fileName, tensors] of plan) {
    const toWrite = tensors.map(({ name, file, entry }): TensorToWrite => {
      const dtype = writtenDtype(entry.dtype, options.dtype);
      const module = modules.get(name);
      const read = async () => {
        if (!module && dtype === entry.dtype) return file.readBytes(entry.name, { signal });
        const weight = await file.readFloats(entry.name, undefined, signal);
        if (module) await addModule(weight, adapter, module, signal);
        return weight;
      };
      return { name, dtype, shape: entry.shape, data: read };
    });
    await writeSafetensors(path.join(folder, fileName), toWrite, {
      metadata: { format: "pt" },
      ...(signal ? { signal } : {}),
      onTensor: (tensor) => options.onProgress?.({ tensor, tensors: ++done, totalTensors }),
    });
  }
}

async function addModule(
  weight: Float32Array,
  adapter: LoraAdapter,
  module: LoraModule,
  signal?: AbortSignal,
): Promise<void> {
  const names = loraTensorNames(module.path);
  const a = adapter.tensors.get(names.a);
  const b = adapter.tensors.get(names.b);
  if (!a || !b) return;
  const { rank, alpha } = adapter;
  await addLowRank(weight, { a: a.data, b: b.data, rank, scale: alpha / rank }, signal);
}

function writtenDtype(stored: StoredDtype, wanted: MergeOptions["dtype"] = "keep"): StoredDtype {
  return wanted === "keep" ? stored : wanted;
}

async function writeIndex(
  folder: string,
  plan: Plan,
  dtype: NonNullable<MergeOptions["dtype"]>,
): Promise<void> {
  const weightMap: Record<string, string> = {};
  let totalBytes = 0;
  for (const [fileName, tensors] of plan) {
    for (const { name, entry } of tensors) {
      weightMap[name] = fileName;
      const elementBytes = storedElementBytes[writtenDtype(entry.dtype, dtype)];
      totalBytes += elementCount(entry.shape) * elementBytes;
    }
  }
  const index = { metadata: { total_size: totalBytes }, weight_map: weightMap };
  await writeJson(path.join(folder, weightIndexFile), index);
}

const dtypeNames: Readonly<Record<StoredDtype, string>> = {
  F32: "float32",
  F16: "float16",
  BF16: "bfloat16",
};

async function writeConfig(folder: string, options: MergeOptions, untie: boolean): Promise<void> {
  const config = await readJsonObject(path.join(options.base, "config.json"), options.signal);
  const changed: Record<string, unknown> = { ...config };
  if (untie) changed["tie_word_embeddings"] = false;
  if (options.dtype && options.dtype !== "keep") {
    // transformers 5 says `dtype` where 4 said `torch_dtype`.
    const field = "dtype" in config ? "dtype" : "torch_dtype";
    changed[field] = dtypeNames[options.dtype];
  }
  await writeJson(path.join(folder, "config.json"), changed);
}

async function writeJson(file: string, json: JsonObject): Promise<void> {
  await writeFile(file, `${JSON.stringify(json, null, 2)}\n`, { flush: true });
}

// Tokenizer, chat template, generation settings and licence belong to the model as much as weights.
async function copyCompanions(base: string, folder: string): Promise<void> {
  const written = new Set(["config.json", weightIndexFile, "adapter_config.json"]);
  for (const name of await readdir(base)) {
    const wanted = /\.(json|jinja|model|txt)$/.test(name) || /^(LICENSE|NOTICE)/i.test(name);
    if (wanted && !written.has(name))
      await copyFile(path.join(base, name), path.join(folder, name));
  }
}

function checkOptions({ base, output, dtype = "keep" }: MergeOptions): void {
  if (path.resolve(base) === path.resolve(output)) {
    throw new EngineError("invalid_options", "`output` must be another folder than `base`.");
  }
  if (dtype !== "keep" && !Object.hasOwn(dtypeNames, dtype)) {
    throw new EngineError(
      "invalid_options",
      `\`dtype\` must be keep, F32, F16 or BF16, not ${dtype}.`,
    );
  }
}

function checkFit(adapter: LoraAdapter, modules: readonly LoraModule[]): void {
  for (const { path: modulePath, inFeatures, outFeatures } of modules) {
    const names = loraTensorNames(modulePath);
    const a = adapter.tensors.get(names.a);
    const b = adapter.tensors.get(names.b);
    const fits =
      a?.data.length === adapter.rank * inFeatures && b?.data.length === outFeatures * adapter.rank;
    if (fits) continue;
    throw new EngineError(
      "unsupported_adapter",
      `The adapter does not fit the model: "${modulePath}" maps ${inFeatures} to ${outFeatures} features.`,
    );
  }
}
