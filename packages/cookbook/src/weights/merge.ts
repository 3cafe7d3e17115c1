import { copyFile, readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { writeFolderAtomically } from "@tinker-ts/hub/files";
import { AdapterFolder } from "./adapter.js";
import { addProduct } from "./apply-change.js";
import { familyOf, type Family, type ModelConfig } from "./families.js";
import { decodeFloats, encodeFloats, isFloatType } from "./floats.js";
import { planMerge, type Change, type MergePlan } from "./plan.js";
import {
  SafetensorsFile,
  writeSafetensors,
  type TensorEntry,
  type TensorToWrite,
} from "./safetensors.js";
import { WeightsError } from "./weights-error.js";

/** What is merged into what. */
export interface MergeOptions {
  /** A folder with a model in Hugging Face's form. */
  readonly base: string;
  /** A folder with an adapter: a downloaded checkpoint, or one in PEFT's form. */
  readonly adapter: string;
  /** The folder to make. */
  readonly output: string;
  /** Called as tensors are written. */
  readonly onProgress?:
    | ((progress: { readonly done: number; readonly total: number }) => void)
    | undefined;
  readonly signal?: AbortSignal | undefined;
}

const copied =
  /^(tokenizer.*|special_tokens_map\.json|added_tokens\.json|vocab\.json|merges\.txt|chat_template\..*|tiktoken\.model|(video_)?preprocessor_config\.json|processor_config\.json|generation_config\.json|LICENSE.*|.*\.py)$/;

/**
 * Writes the model that an adapter makes of its base, as a folder that needs no adapter.
 *
 * - Everything is planned before a file is touched; the folder appears as a whole or not at all.
 * - Weights pass through one tensor at a time and keep their files and types.
 * - Where embeddings are tied and the unembedding is adapted, the two part: training never changed the input side.
 */
export async function mergeAdapter(options: MergeOptions): Promise<void> {
  const { base, output } = options;
  if (await stat(output).catch(() => undefined)) {
    throw new WeightsError(`${output} exists already; choose a folder that does not`);
  }
  const configText = await readFile(path.join(base, "config.json"), "utf8");
  const config = JSON.parse(configText) as ModelConfig;
  const shards = await openShards(base);
  const adapter = await AdapterFolder.open(options.adapter);
  try {
    const tensors = new Map(shards.flatMap((shard) => [...shard.tensors]));
    const family = familyOf(config, tensors.keys());
    const plan = planMerge(adapter, tensors, family);
    checkTypes(plan, tensors);
    const parts = partsEmbeddings(plan, tensors, family);
    const untied = { ...config, tie_word_embeddings: false };
    const isTied = plan.has(`${family.head}.weight`) && config["tie_word_embeddings"] === true;
    const text = parts || isTied ? JSON.stringify(untied, null, 2) : configText;
    await writeFolderAtomically(output, false, async (temporary) => {
      await writeShards({ ...options, temporary, shards, adapter, plan, family, parts });
      await copyCompanions(base, temporary);
      await writeFile(path.join(temporary, "config.json"), text);
    });
  } finally {
    await Promise.all([adapter.close(), ...shards.map((shard) => shard.close())]);
  }
}

async function openShards(base: string): Promise<SafetensorsFile[]> {
  const names = (await readdir(base)).filter((name) => name.endsWith(".safetensors")).toSorted();
  if (names.length === 0) throw new WeightsError(`${base} has no safetensors files`);
  const shards: SafetensorsFile[] = [];
  for (const name of names) shards.push(await SafetensorsFile.open(path.join(base, name)));
  return shards;
}

/** Adding to numbers of a quantized type would be wrong, so it is refused. */
function checkTypes(plan: MergePlan, tensors: ReadonlyMap<string, TensorEntry>): void {
  for (const name of plan.keys()) {
    const dtype = tensors.get(name)?.dtype ?? "F32";
    if (isFloatType(dtype)) continue;
    throw new WeightsError(
      `${name}: the base model's weights are of type ${dtype}; merge into a model with 16-bit or 32-bit weights`,
    );
  }
}

/** The embedding that becomes the unembedding's own, where the base model has one tensor for both. */
function partsEmbeddings(
  plan: MergePlan,
  tensors: ReadonlyMap<string, TensorEntry>,
  family: Family,
): TensorEntry | undefined {
  const head = `${family.head}.weight`;
  if (!plan.has(head) || tensors.has(head)) return undefined;
  const embedding = [...tensors.values()].find(({ name }) => name.endsWith("embed_tokens.weight"));
  if (embedding) return embedding;
  throw new WeightsError(`the base model has neither ${head} nor an embedding to make it of`);
}

interface WriteParts extends Omit<MergeOptions, "adapter"> {
  readonly temporary: string;
  readonly shards: readonly SafetensorsFile[];
  readonly adapter: AdapterFolder;
  readonly plan: MergePlan;
  readonly family: Family;
  readonly parts: TensorEntry | undefined;
}

async function writeShards(parts: WriteParts): Promise<void> {
  const { shards, plan, family, temporary, signal, onProgress } = parts;
  const total = shards.reduce((sum, { tensors }) => sum + tensors.size, parts.parts ? 1 : 0);
  const weightMap: Record<string, string> = {};
  let done = 0;
  let totalSize = 0;
  for (const shard of shards) {
    const file = path.basename(shard.path);
    const tensorOf = (entry: TensorEntry, name: string): TensorToWrite => ({
      name,
      dtype: entry.dtype,
      shape: entry.shape,
      byteLength: entry.end - entry.start,
      read: async () => {
        const bytes = await changed(
          await shard.read(entry),
          entry,
          plan.get(name) ?? [],
          parts.adapter,
        );
        onProgress?.({ done: ++done, total });
        return bytes;
      },
    });
    const own = [...shard.tensors.values()].map((entry) => tensorOf(entry, entry.name));
    const hasEmbedding = parts.parts !== undefined && shard.tensors.has(parts.parts.name);
    const tensors = hasEmbedding ? [...own, tensorOf(parts.parts, `${family.head}.weight`)] : own;
    await writeSafetensors(path.join(temporary, file), tensors, signal);
    for (const { name, byteLength } of tensors) {
      weightMap[name] = file;
      totalSize += byteLength;
    }
  }
  if (shards.length === 1) return;
  const sorted = Object.fromEntries(
    Object.entries(weightMap).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  const index = { metadata: { total_size: totalSize }, weight_map: sorted };
  await writeFile(
    path.join(temporary, "model.safetensors.index.json"),
    JSON.stringify(index, null, 2),
  );
}

async function changed(
  bytes: Uint8Array,
  { dtype, shape }: TensorEntry,
  changes: readonly Change[],
  adapter: AdapterFolder,
): Promise<Uint8Array> {
  if (changes.length === 0 || !isFloatType(dtype)) return bytes;
  const target = { shape, data: decodeFloats(dtype, bytes) };
  for (const { pair, expert, region } of changes) {
    const a = await adapter.readFactor(pair.a, expert);
    const b = await adapter.readFactor(pair.b, expert);
    addProduct(target, a, b, adapter.scale, region);
  }
  return encodeFloats(dtype, target.data);
}

async function copyCompanions(base: string, folder: string): Promise<void> {
  for (const name of await readdir(base)) {
    if (copied.test(name)) await copyFile(path.join(base, name), path.join(folder, name));
  }
}
