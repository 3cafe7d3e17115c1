import path from "node:path";
import { isFolder } from "../files/paths.js";
import { EngineError } from "./engine-error.js";
import { parseModelConfig, type ModelConfig } from "./model-config.js";
import { isStoredDtype } from "./safetensors.js";
import { formatShape, sameShape } from "./safetensors-header.js";
import { readJsonObject, readJsonObjectIfPresent } from "./file-helpers.js";
import { embeddingName, expectedTensors, unembeddingName } from "./tensor-names.js";
import { openWeightShards, type WeightShards } from "./weight-shards.js";
import { isOtherPart, leavesTyingOpen, storedNames } from "./wrapped-models.js";
import type { StoredTensor, WeightSource } from "./weight-source.js";

/** A model on disk, checked: its weights are exactly those that its configuration asks for. */
export interface ModelFolder {
  readonly path: string;
  readonly config: ModelConfig;
  /** The tensors of `expectedTensors(config)`, under those names. */
  readonly weights: WeightSource;
  /** The name of one of these tensors in the files. */
  readonly storedName: (name: string) => string;
  /** Tensors of parts besides the text model, such as vision, which are not loaded. */
  readonly ignored: readonly string[];
  close(): Promise<void>;
}

/** Opens a Hugging Face folder and checks configuration, names, shapes and types before any weight is read. */
export async function openModelFolder(folder: string, signal?: AbortSignal): Promise<ModelFolder> {
  const config = await readModelConfig(folder, signal);
  const shards = await openWeightShards(folder, signal);
  try {
    const storedName = storedNames(shards.fileOf);
    const weights = selectWeights(folder, config, shards, storedName);
    if (config.tiedEmbeddings) await checkTiedCopy(folder, shards, storedName, signal);
    const ignored = [...shards.fileOf.keys()].filter(isOtherPart);
    return { path: folder, config, weights, storedName, ignored, close: () => weights.close() };
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
  const parsed = parseModelConfig(config, generation ?? {});
  const holdsUnembedding = leavesTyingOpen(config)
    ? await hasUnembedding(folder, signal)
    : undefined;
  return holdsUnembedding === undefined ? parsed : { ...parsed, tiedEmbeddings: !holdsUnembedding };
}

/** Whether the files have an unembedding; undefined where there are no files. */
async function hasUnembedding(folder: string, signal?: AbortSignal): Promise<boolean | undefined> {
  try {
    const shards = await openWeightShards(folder, signal);
    await shards.close();
    return shards.fileOf.has(storedNames(shards.fileOf)(unembeddingName));
  } catch (error) {
    if (error instanceof EngineError && error.code === "weights_missing") return undefined;
    throw error;
  }
}

// Every problem is collected, so that one error describes a damaged or mismatched folder.
function selectWeights(
  folder: string,
  config: ModelConfig,
  shards: WeightShards,
  storedName: ModelFolder["storedName"],
): WeightSource {
  const tensors = new Map<string, StoredTensor>();
  const problems: string[] = [];
  const known = new Set<string>();
  for (const [name, shape] of expectedTensors(config)) {
    const stored = storedName(name);
    known.add(stored);
    const entry = shards.fileOf.get(stored)?.tensors.get(stored);
    if (!entry) {
      problems.push(`"${stored}" is missing`);
      continue;
    }
    if (!sameShape(entry.shape, shape)) {
      problems.push(
        `"${stored}" has shape ${formatShape(entry.shape)} instead of ${formatShape(shape)}`,
      );
    }
    if (!isStoredDtype(entry.dtype)) problems.push(`"${stored}" is stored as ${entry.dtype}`);
    else tensors.set(name, { name, dtype: entry.dtype, shape });
  }
  for (const name of shards.fileOf.keys()) {
    if (known.has(name) || isHarmless(name, config, storedName)) continue;
    problems.push(`"${name}" is not expected`);
  }
  if (problems.length > 0) throw mismatch(folder, config, problems);
  return {
    tensors,
    read: async (name, target, signal) => {
      const stored = storedName(name);
      const file = tensors.has(name) ? shards.fileOf.get(stored) : undefined;
      if (file) return file.readFloats(stored, target, signal);
      throw new EngineError("unknown_tensor", `The model in ${folder} has no tensor "${name}".`);
    },
    close: () => shards.close(),
  };
}

// Old exports contain the rotation frequencies, which are derived from the configuration; a copy of tied
// embeddings is compared on its own.
function isHarmless(
  name: string,
  config: ModelConfig,
  storedName: ModelFolder["storedName"],
): boolean {
  if (name.endsWith(".rotary_emb.inv_freq") || isOtherPart(name)) return true;
  return config.tiedEmbeddings && name === storedName(unembeddingName);
}

async function checkTiedCopy(
  folder: string,
  shards: WeightShards,
  storedName: ModelFolder["storedName"],
  signal?: AbortSignal,
): Promise<void> {
  const [unembedding, embedding] = [storedName(unembeddingName), storedName(embeddingName)];
  const copy = shards.fileOf.get(unembedding);
  const original = shards.fileOf.get(embedding);
  if (!copy || !original) return;
  const stepBytes = 1 << 24;
  for (let start = 0, compared = stepBytes; compared === stepBytes; start += stepBytes) {
    const range = { start, end: start + stepBytes, signal };
    const [a, b] = await Promise.all([
      copy.readBytes(unembedding, range),
      original.readBytes(embedding, range),
    ]);
    if (Buffer.compare(a, b) !== 0) {
      throw new EngineError(
        "model_mismatch",
        `${folder}: config.json says that embeddings are tied ("tie_word_embeddings"), but ` +
          `"${unembedding}" differs from "${embedding}". Set "tie_word_embeddings" to ` +
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
