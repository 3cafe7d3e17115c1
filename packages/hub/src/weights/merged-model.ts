import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { isObject, parseJson, type JsonObject } from "../files/json.js";
import { patchJson } from "../files/patch-json.js";
import { weightIndexFile } from "../files/weight-index.js";
import { writeFolderAtomically } from "./file-helpers.js";
import { tensorSizeBytes, type SafetensorsDtype } from "./safetensors-header.js";
import { writeSafetensors, type TensorToWrite } from "./safetensors-writer.js";
import { isStoredDtype } from "./safetensors.js";
import type { WeightShards } from "./weight-shards.js";
import type { StoredDtype } from "./weight-source.js";

/** Adds a change to the weights of one tensor, in place. */
export type WeightChange = (weight: Float32Array) => Promise<void>;

/** The model to write: a base with changed tensors. */
export interface MergedModel {
  /** The folder of the base model. */
  readonly base: string;
  readonly shards: WeightShards;
  /** By the name of the tensor; all others are copied byte by byte. */
  readonly changes: ReadonlyMap<string, WeightChange>;
  /** A tensor that the base lacks: its name, and the name of the tensor it starts from. */
  readonly untied?: { readonly name: string; readonly from: string } | undefined;
  /** Whether the new `config.json` declares the unembedding as untied. */
  readonly untie: boolean;
  /** Type of the floats that are written. @default the base's, tensor by tensor */
  readonly dtype?: StoredDtype | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called after each tensor. */
  readonly onTensor?: ((name: string, done: number, total: number) => void) | undefined;
}

/**
 * Writes a merged model as a Hugging Face folder, which appears only when it is complete.
 *
 * Weights pass through one tensor at a time and keep their files. Tokenizer, chat template, generation settings,
 * code and licence are copied, because they belong to the model as much as its weights.
 */
export async function writeMergedModel(
  output: string,
  overwrite: boolean,
  model: MergedModel,
): Promise<void> {
  await writeFolderAtomically(output, overwrite, async (folder) => {
    const files = planFiles(model);
    const total = [...files.values()].reduce((sum, tensors) => sum + tensors.length, 0);
    let done = 0;
    for (const [name, tensors] of files) {
      await writeSafetensors(path.join(folder, name), tensors, {
        metadata: { format: "pt" },
        ...(model.signal ? { signal: model.signal } : {}),
        onTensor: (tensor) => model.onTensor?.(tensor, ++done, total),
      });
    }
    if (files.size > 1) await writeIndex(folder, files);
    await writeConfig(folder, model);
    await copyCompanions(model.base, folder);
  });
}

type Files = ReadonlyMap<string, readonly (TensorToWrite & { readonly dtype: SafetensorsDtype })[]>;

function planFiles({ shards, changes, untied, dtype: wanted, signal }: MergedModel): Files {
  const files = new Map<string, (TensorToWrite & { readonly dtype: SafetensorsDtype })[]>();
  for (const [fileName, file] of shards.files) {
    const own = [...file.tensors.values()].filter(({ name }) => shards.fileOf.get(name) === file);
    const tensors = own.flatMap((entry) => {
      const isFloat = isStoredDtype(entry.dtype);
      const dtype = isFloat ? (wanted ?? entry.dtype) : entry.dtype;
      const names = untied?.from === entry.name ? [entry.name, untied.name] : [entry.name];
      return names.map((name) => {
        const change = changes.get(name);
        const data = async () => {
          if (!change && dtype === entry.dtype) return file.readBytes(entry.name, { signal });
          const weight = await file.readFloats(entry.name, undefined, signal);
          await change?.(weight);
          return weight;
        };
        return { name, dtype, shape: entry.shape, data };
      });
    });
    files.set(fileName, tensors);
  }
  return files;
}

async function writeIndex(folder: string, files: Files): Promise<void> {
  const weightMap = new Map<string, string>();
  let totalBytes = 0;
  for (const [fileName, tensors] of files) {
    for (const { name, dtype, shape } of tensors) {
      weightMap.set(name, fileName);
      totalBytes += tensorSizeBytes(dtype, shape);
    }
  }
  const sorted = [...weightMap].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const index = { metadata: { total_size: totalBytes }, weight_map: Object.fromEntries(sorted) };
  await writeJson(path.join(folder, weightIndexFile), index);
}

/** Only changed fields are rewritten: transformers rejects a 0 where a 0.0 was. */
async function writeConfig(folder: string, { base, untie, dtype }: MergedModel): Promise<void> {
  const text = await readFile(path.join(base, "config.json"), "utf8");
  const json = parseJson(text);
  const changes = isObject(json) ? configChanges(json, untie, dtype) : {};
  await writeFile(path.join(folder, "config.json"), patchJson(text, changes), { flush: true });
}

const dtypeNames: Readonly<Record<StoredDtype, string>> = {
  F32: "float32",
  F16: "float16",
  BF16: "bfloat16",
};

/** The fields that differ from the base, also in nested configurations. */
function configChanges(
  json: JsonObject,
  untie: boolean,
  dtype: StoredDtype | undefined,
): JsonObject {
  const changes: Record<string, unknown> = { ...dtypeChanges(json, dtype) };
  for (const [name, part] of Object.entries(json)) {
    if (!name.endsWith("_config") || !isObject(part)) continue;
    const own = { ...dtypeChanges(part, dtype), ...(name === "text_config" ? untied(part) : {}) };
    if (Object.keys(own).length > 0) changes[name] = own;
  }
  // Transformers 5 calls the field `dtype`, earlier versions `torch_dtype`.
  const isUnnamed = !("dtype" in json) && !("torch_dtype" in json);
  if (dtype !== undefined && isUnnamed) changes["torch_dtype"] = dtypeNames[dtype];
  return { ...changes, ...untied(json) };

  function untied(fields: JsonObject): JsonObject {
    if (!untie) return {};
    // LFM2's own name takes precedence over the usual one.
    const own = "tie_embedding" in fields ? { tie_embedding: false } : {};
    return { tie_word_embeddings: false, ...own };
  }
}

function dtypeChanges(fields: JsonObject, dtype: StoredDtype | undefined): JsonObject {
  if (dtype === undefined) return {};
  const present = ["dtype", "torch_dtype"].filter((name) => typeof fields[name] === "string");
  return Object.fromEntries(present.map((name) => [name, dtypeNames[dtype]]));
}

async function writeJson(file: string, json: object): Promise<void> {
  await writeFile(file, `${JSON.stringify(json, null, 2)}\n`, { flush: true });
}

const companions = [/\.(json|jinja|model|txt|py)$/, /^tokenizer/, /^(LICENSE|NOTICE)/i];
const notCompanions = new Set(["config.json", weightIndexFile, "adapter_config.json"]);

async function copyCompanions(base: string, folder: string): Promise<void> {
  for (const name of await readdir(base)) {
    const isWanted = companions.some((pattern) => pattern.test(name)) && !notCompanions.has(name);
    if (isWanted) await copyFile(path.join(base, name), path.join(folder, name));
  }
}
