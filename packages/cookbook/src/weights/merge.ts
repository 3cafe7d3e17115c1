import { readdir } from "node:fs/promises";
import path from "node:path";
import {
  addLowRank,
  isStoredDtype,
  openShardFiles,
  readJsonObject,
  writeMergedModel,
  type SafetensorsEntry,
  type WeightChange,
  type WeightShards,
} from "@tinker-ts/hub/weights";
import { AdapterFolder } from "./adapter.js";
import { familyOf } from "./families.js";
import { planMerge, type Change, type MergePlan } from "./plan.js";
import { asWeightsError, refuseExisting, WeightsError } from "./weights-error.js";

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

/**
 * Writes the model that an adapter makes of its base, as a folder that needs no adapter.
 *
 * - Everything is planned before a file is touched; the folder appears as a whole or not at all.
 * - Weights pass through one tensor at a time and keep their files and types.
 * - Where embeddings are tied and the unembedding is adapted, the two part: training never changed the input side.
 */
export async function mergeAdapter(options: MergeOptions): Promise<void> {
  await refuseExisting(options.output);
  await asWeightsError(async () => {
    const shards = await openShards(options.base, options.signal);
    try {
      const adapter = await AdapterFolder.open(options.adapter);
      try {
        await writeMerged(options, shards, adapter);
      } finally {
        await adapter.close();
      }
    } finally {
      await shards.close();
    }
  });
}

/** All safetensors files of a model's folder. */
export async function openShards(
  base: string,
  signal: AbortSignal | undefined,
): Promise<WeightShards> {
  const names = (await readdir(base)).filter((name) => name.endsWith(".safetensors")).toSorted();
  return openShardFiles(base, names, new Map(), signal);
}

async function writeMerged(
  { base, output, signal, onProgress }: MergeOptions,
  shards: WeightShards,
  adapter: AdapterFolder,
): Promise<void> {
  if (shards.files.size === 0) throw new WeightsError(`${base} has no safetensors files`);
  const config = await readJsonObject(path.join(base, "config.json"), signal);
  const tensors = new Map([...shards.files.values()].flatMap((file) => [...file.tensors]));
  const family = familyOf(config, tensors.keys());
  const plan = planMerge(adapter, tensors, family);
  checkTypes(plan, tensors);
  const head = `${family.head}.weight`;
  const embedding = untiedEmbedding(plan, tensors, head);
  await writeMergedModel(output, false, {
    base,
    shards,
    changes: new Map(
      [...plan].map(([name, changes]) => {
        const { shape } = tensors.get(name) ?? embedding!;
        return [name, changeOf(changes, shape, adapter, signal)];
      }),
    ),
    untied: embedding && { name: head, from: embedding.name },
    untie: plan.has(head),
    signal,
    onTensor: (_name, done, total) => onProgress?.({ done, total }),
  });
}

/** Adding to numbers of a quantized type would be wrong, so it is refused. */
function checkTypes(plan: MergePlan, tensors: ReadonlyMap<string, SafetensorsEntry>): void {
  for (const name of plan.keys()) {
    const dtype = tensors.get(name)?.dtype ?? "F32";
    if (isStoredDtype(dtype)) continue;
    throw new WeightsError(
      `${name}: the base model's weights are of type ${dtype}; merge into a model with 16-bit or 32-bit weights`,
    );
  }
}

/** The embedding that becomes the unembedding's own, where the base model has one tensor for both. */
function untiedEmbedding(
  plan: MergePlan,
  tensors: ReadonlyMap<string, SafetensorsEntry>,
  head: string,
): SafetensorsEntry | undefined {
  if (!plan.has(head) || tensors.has(head)) return undefined;
  const embedding = [...tensors.values()].find(({ name }) => name.endsWith("embed_tokens.weight"));
  if (embedding) return embedding;
  throw new WeightsError(`the base model has neither ${head} nor an embedding to make it of`);
}

function changeOf(
  changes: readonly Change[],
  shape: readonly number[],
  adapter: AdapterFolder,
  signal: AbortSignal | undefined,
): WeightChange {
  const [height, width] = shape.slice(-2) as [number, number];
  return async (weight) => {
    for (const { pair, expert, region } of changes) {
      const a = await adapter.readFactor(pair.a, expert);
      const b = await adapter.readFactor(pair.b, expert);
      const update = { a: a.data, b: b.data, rank: a.shape[0]!, scale: adapter.scale };
      const [outputStep, columnStep] = region.isTransposed ? [1, width] : [width, 1];
      const first = (region.expert ?? 0) * height * width + region.offset * outputStep;
      const place = { first, rowStep: region.stride * outputStep, columnStep };
      await addLowRank(weight, update, { place, signal });
    }
  };
}
