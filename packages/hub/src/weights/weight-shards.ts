import path from "node:path";
import { isFile } from "../files/paths.js";
import { singleWeightsFile, weightIndexFile } from "../files/weight-index.js";
import { EngineError } from "./engine-error.js";
import { SafetensorsFile } from "./safetensors.js";
import { readWeightIndex } from "./file-helpers.js";

/** The safetensors files of one model, open for reading. */
export interface WeightShards {
  /** By file name, in the order of the index. */
  readonly files: ReadonlyMap<string, SafetensorsFile>;
  /** The file of a tensor. */
  readonly fileOf: ReadonlyMap<string, SafetensorsFile>;
  close(): Promise<void>;
}

/** Opens a folder's weights: `model.safetensors`, or else the files that its index names. */
export async function openWeightShards(
  folder: string,
  signal?: AbortSignal,
): Promise<WeightShards> {
  const single = path.join(folder, singleWeightsFile);
  const index = path.join(folder, weightIndexFile);
  if (await isFile(single)) return openShardFiles(folder, [singleWeightsFile], new Map(), signal);
  if (!(await isFile(index))) {
    throw new EngineError(
      "weights_missing",
      `${folder} has neither ${singleWeightsFile} nor ${weightIndexFile}. ` +
        "Other formats (.bin, .gguf) must be converted to safetensors first.",
    );
  }
  const weightMap = await readWeightIndex(index, signal);
  return openShardFiles(folder, [...new Set(weightMap.values())], weightMap, signal);
}

/** Opens the named files of a folder; `weightMap` is the index, which may lack tensors or be empty. */
export async function openShardFiles(
  folder: string,
  names: readonly string[],
  weightMap: ReadonlyMap<string, string>,
  signal?: AbortSignal,
): Promise<WeightShards> {
  const files = new Map<string, SafetensorsFile>();
  const close = async () => {
    await Promise.all([...files.values()].map((file) => file.close()));
  };
  try {
    await refuseMissingFiles(folder, names);
    for (const name of names) {
      files.set(name, await SafetensorsFile.open(path.join(folder, name), signal));
    }
    return { files, fileOf: locateTensors(folder, files, weightMap), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function refuseMissingFiles(folder: string, names: readonly string[]): Promise<void> {
  const missing: string[] = [];
  for (const name of names) if (!(await isFile(path.join(folder, name)))) missing.push(name);
  if (missing.length === 0) return;
  throw new EngineError(
    "weights_missing",
    `${folder} lacks ${missing.length} of ${names.length} weight files: ${missing.join(", ")}.`,
  );
}

// The index takes precedence; a tensor missing from it is taken from the file that has it.
function locateTensors(
  folder: string,
  files: ReadonlyMap<string, SafetensorsFile>,
  weightMap: ReadonlyMap<string, string>,
): Map<string, SafetensorsFile> {
  const fileOf = new Map<string, SafetensorsFile>();
  const problems: string[] = [];
  for (const [name, fileName] of weightMap) {
    const file = files.get(fileName);
    if (file?.tensors.has(name)) fileOf.set(name, file);
    else problems.push(`"${name}" is not in ${fileName}`);
  }
  for (const file of files.values()) {
    for (const name of file.tensors.keys()) {
      if (weightMap.has(name)) continue;
      if (fileOf.has(name)) problems.push(`"${name}" lies in two files and is not listed`);
      fileOf.set(name, file);
    }
  }
  if (problems.length === 0) return fileOf;
  throw new EngineError(
    "invalid_weight_index",
    `${folder}: ${weightIndexFile} and the weight files disagree: ${problems.join("; ")}.`,
  );
}
