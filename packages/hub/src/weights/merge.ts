import path from "node:path";
import { EngineError } from "./engine-error.js";
import { loraModules, type LoraModule } from "./lora-modules.js";
import { addLowRank } from "./low-rank.js";
import { writeMergedModel, type WeightChange } from "./merged-model.js";
import { openModelFolder } from "./model-folder.js";
import { loraTensorNames, type LoraAdapter } from "./peft/adapter.js";
import { embeddingName, unembeddingName } from "./tensor-names.js";
import { openWeightShards } from "./weight-shards.js";
import type { StoredDtype } from "./weight-source.js";

/** Progress of a merge. */
export interface MergeProgress {
  /** The tensor that was written last. */
  readonly tensor: string;
  readonly tensors: number;
  readonly totalTensors: number;
}

/** Options of a merge. */
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
 * Merges an adapter into its base and writes the result, as a Hugging Face folder that needs no adapter.
 *
 * Where embeddings are tied and the unembedding is adapted, the merged model has both matrices.
 */
export async function mergeAdapter(options: MergeOptions): Promise<void> {
  const { base, adapter, output, overwrite = false, signal, onProgress } = options;
  checkOptions(options);
  const model = await openModelFolder(base, signal);
  await model.close();
  const modules = loraModules(model.config, adapter.targets);
  checkFit(adapter, modules);
  const untie = model.config.tiedEmbeddings && modules.some(({ target }) => target === "lm_head");
  const dtype = options.dtype === "keep" ? undefined : options.dtype;
  const { storedName } = model;
  const unembedding = storedName(unembeddingName);
  const shards = await openWeightShards(base, signal);
  try {
    const hasUnembedding = shards.fileOf.has(unembedding);
    await writeMergedModel(output, overwrite, {
      base,
      shards,
      changes: changesOf(modules, adapter, storedName, signal),
      untied:
        untie && !hasUnembedding
          ? { name: unembedding, from: storedName(embeddingName) }
          : undefined,
      untie,
      dtype,
      signal,
      onTensor: (tensor, tensors, totalTensors) => onProgress?.({ tensor, tensors, totalTensors }),
    });
  } finally {
    await shards.close();
  }
}

/** The adapter's updates of each tensor; one tensor may hold several matrices. */
function changesOf(
  modules: readonly LoraModule[],
  adapter: LoraAdapter,
  storedName: (name: string) => string,
  signal: AbortSignal | undefined,
): Map<string, WeightChange> {
  const changes = new Map<string, WeightChange>();
  for (const module of modules) {
    const name = storedName(module.tensor);
    const [before, own] = [changes.get(name), changeOf(module, adapter, signal)];
    changes.set(name, async (weight) => {
      await before?.(weight);
      await own(weight);
    });
  }
  return changes;
}

function changeOf(
  { path: modulePath, firstRow, inFeatures }: LoraModule,
  adapter: LoraAdapter,
  signal: AbortSignal | undefined,
): WeightChange {
  const { rank, alpha, tensors } = adapter;
  const names = loraTensorNames(modulePath);
  const [a, b] = [tensors.get(names.a), tensors.get(names.b)];
  const place = { first: firstRow * inFeatures, rowStep: inFeatures, columnStep: 1 };
  return async (weight) => {
    if (!a || !b) return;
    const update = { a: a.data, b: b.data, rank, scale: alpha / rank };
    await addLowRank(weight, update, { place, signal });
  };
}

function checkOptions({ base, output, dtype = "keep" }: MergeOptions): void {
  if (path.resolve(base) === path.resolve(output)) {
    throw new EngineError("invalid_options", "`output` must be another folder than `base`.");
  }
  const known: readonly string[] = ["keep", "F32", "F16", "BF16"];
  if (!known.includes(dtype)) {
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
