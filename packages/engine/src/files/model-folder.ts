import path from "node:path";
import { isFolder } from "@tinker-ts/hub/files";
import { EngineError } from "../errors.js";
import { parseModelConfig, type ModelConfig } from "./model-config.js";
import { isStoredDtype } from "./safetensors.js";
import { formatShape, sameShape } from "./shape.js";
import { readJsonObject, readJsonObjectIfPresent } from "./shared-helpers.js";
import { embeddingName, expectedTensors, unembeddingName } from "./tensor-names.js";
import { openWeightShards, type WeightShards } from "./weight-shards.js";
import type { StoredTensor, WeightSource } from "./weight-source.js";

/** A model on disk, checked: its weights are exactly those that its configuration asks for. */
export interface ModelFolder {
  readonly path: string;
  readonly config: ModelConfig;
  /** The tensors of `expectedTensors(config)`, under those names. */
  readonly weights: WeightSource;
  close(): Promise<void>;
}

/** Opens a Hugging Face folder and checks configuration, names, shapes and types before any weight is read. */
export async function openModelFolder(folder: string, signal?: AbortSignal): Promise<ModelFolder> {
  const config = await readModelConfig(folder, signal);
  const shards = await openWeightShards(folder, signal);
  try {
    const weights = selectWeights(folder, config, shards);
    if (config.tiedEmbeddings) await checkTiedCopy(folder, shards, signal);
    return { path: folder, config, weights, close: () => weights.close() };
  } catch (error) {
    await shards.close();
    throw error;
  }
}

/** Reads and checks a folder's `config.json` and `generation_config.json`. */
export async function readModelConfig(folder: string, signal?: AbortSignal): Promise<ModelConfig> {
  if (!(await isFolder(folder))) {
    throw new EngineError("folder_missing", `The folder ${folder} does not exist.`);
  }
  const config = await readJsonObject(path.join(folder, "config.json"), signal);
  const generation = await readJsonObjectIfPresent(
    path.join(folder, "generation_config.json"),
    signal,
  );
  return parseModelConfig(config, generation ?? {});
}

// Every problem is collected, so that a damaged or mismatched folder is understood from one error.
function selectWeights(folder: string, config: ModelConfig, shards: WeightShards): WeightSource {
  const tensors = new Map<string, StoredTensor>();
  const problems: string[] = [];
  const expected = expectedTensors(config);
  for (const [name, shape] of expected) {
    const entry = shards.fileOf.get(name)?.tensors.get(name);
    if (!entry) {
      problems.push(`"${name}" is missing`);
      continue;
    }
    if (!sameShape(entry.shape, shape)) {
      problems.push(
        `"${name}" has shape ${formatShape(entry.shape)} instead of ${formatShape(shape)}`,
      );
    }
    if (!isStoredDtype(entry.dtype)) problems.push(`"${name}" is stored as ${entry.dtype}`);
    else tensors.set(name, { name, dtype: entry.dtype, shape });
  }
  for (const name of shards.fileOf.keys()) {
    if (expected.has(name) || isHarmless(name, config)) continue;
    problems.push(`"${name}" is not expected`);
  }
  if (problems.length > 0) throw mismatch(folder, config, problems);
  return {
    tensors,
    read: async (name, target, signal) => {
      const file = tensors.has(name) ? shards.fileOf.get(name) : undefined;
      if (file) return file.readFloats(name, target, signal);
      throw new EngineError("unknown_tensor", `The model in ${folder} has no tensor "${name}".`);
    },
    close: () => shards.close(),
  };
}

// Old exports contain the rotation frequencies, which follow from the configuration; a copy of tied
// embeddings is compared on its own.
function isHarmless(name: string, config: ModelConfig): boolean {
  if (name.endsWith(".rotary_emb.inv_freq")) return true;
  return config.tiedEmbeddings && name === unembeddingName;
}

async function checkTiedCopy(
  folder: string,
  shards: WeightShards,
  signal?: AbortSignal,
): Promise<void> {
  const copy = shards.fileOf.get(unembeddingName);
  const original = shards.fileOf.get(embeddingName);
  if (!copy || !original) return;
  const stepBytes = 1 << 24;
  for (let start = 0, compared = stepBytes; compared === stepBytes; start += stepBytes) {
    const range = { start, end: start + stepBytes, signal };
    const [a, b] = await Promise.all([
      copy.readBytes(unembeddingName, range),
      original.readBytes(embeddingName, range),
    ]);
    if (Buffer.compare(a, b) !== 0) {
      throw new EngineError(
        "model_mismatch",
        `${folder}: config.json says that embeddings are tied ("tie_word_embeddings"), but ` +
          `"${unembeddingName}" differs from "${embeddingName}". Set "tie_word_embeddings" to ` +
          "false to use both, or remove the tensor.",
      );
    }
    compared = a.length;
  }
}

function mismatch(folder: string, config: ModelConfig, problems: readonly string[]): EngineError {
  return new EngineError(
    "model_mismatch",
    `The weights in ${folder} do not fit its config.json (${config.architecture}, ` +
      `${config.layers} layers): ${problems.join("; ")}.`,
  );
}
