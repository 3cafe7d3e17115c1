import path from "node:path";
import { isFile } from "@tinker-ts/hub/files";
import { EngineError } from "../../errors.js";
import {
  flagsOfTargets,
  loraModules,
  loraTargets,
  targetsOfFlags,
  type LoraFlags,
  type LoraModule,
  type LoraTarget,
} from "../lora-modules.js";
import type { ModelConfig } from "../model-config.js";
import { isStoredDtype, SafetensorsFile } from "../safetensors.js";
import { elementCount, formatShape, sameShape } from "../shape.js";
import { readJsonObject } from "../shared-helpers.js";
import type { WeightSource } from "../weight-source.js";
import {
  adapterTensorShapes,
  loraTensorNames,
  nameIn,
  parseLoraTensorName,
  type LoraAdapter,
  type NamedTensor,
} from "./adapter.js";
import { checkBaseCopies, isBaseCopy } from "./base-copies.js";
import { parsePeftConfig, type PeftConfig } from "./config.js";

/** Name of the file that holds an adapter's tensors. */
export const adapterWeightsFile = "adapter_model.safetensors";

/** Name of the file that describes an adapter. */
export const adapterConfigFile = "adapter_config.json";

/** The model that an adapter is read for. */
export interface AdapterBase {
  readonly config: ModelConfig;
  /** Needed for adapters that repeat weights of their base, which PEFT writes for the unembedding. */
  readonly weights?: WeightSource;
}

/** Reads a PEFT adapter, from here or from elsewhere; what does not fit the model is listed in one error. */
export async function readAdapter(
  folder: string,
  base: AdapterBase,
  signal?: AbortSignal,
): Promise<LoraAdapter> {
  const configPath = path.join(folder, adapterConfigFile);
  const peft = parsePeftConfig(await readJsonObject(configPath, signal), configPath);
  const weightsPath = path.join(folder, adapterWeightsFile);
  if (!(await isFile(weightsPath)) && (await isFile(path.join(folder, "adapter_model.bin")))) {
    throw new EngineError(
      "unsupported_adapter",
      `${folder} has adapter_model.bin, which is not supported. Save it with safe_serialization=True.`,
    );
  }
  const file = await SafetensorsFile.open(weightsPath, signal);
  try {
    const names = peftNames(file);
    const present = checkTensors(file, names, peft, base.config);
    await checkBaseCopies(file, base.weights, signal);
    const targets = loraTargets.filter((target) => present.has(target));
    const flags = readFlags(file.metadata, targets);
    const tensors = new Map<string, NamedTensor>();
    for (const [name, shape] of adapterTensorShapes(
      base.config,
      targetsOfFlags(flags),
      peft.rank,
    )) {
      const data = new Float32Array(elementCount(shape));
      const stored = names.get(name);
      if (stored !== undefined) await file.readFloats(stored, data, signal);
      tensors.set(name, { shape, data });
    }
    const { rank, alpha, baseModel } = peft;
    return { rank, alpha, baseModel, targets, ...flags, seed: readSeed(file.metadata), tensors };
  } finally {
    await file.close();
  }
}

/** The names of the tensors as PEFT has them, with those in the file. */
function peftNames(file: SafetensorsFile): Map<string, string> {
  const names = new Map<string, string>();
  for (const name of file.tensors.keys()) {
    const peftName = nameIn("peft", name);
    if (names.has(peftName)) {
      throw new EngineError(
        "unsupported_adapter",
        `The adapter ${file.path} has an unembedding twice: "${names.get(peftName)}" and "${name}".`,
      );
    }
    names.set(peftName, name);
  }
  return names;
}

/** Compares the file with model and configuration; returns the targets that it has. */
function checkTensors(
  file: SafetensorsFile,
  names: ReadonlyMap<string, string>,
  peft: PeftConfig,
  config: ModelConfig,
): ReadonlySet<LoraTarget> {
  const problems: string[] = [];
  const modules = new Map(loraModules(config, loraTargets).map((module) => [module.path, module]));
  const shapes = adapterTensorShapes(config, loraTargets, peft.rank);
  const present = new Set<LoraModule>();
  for (const { name, shape, dtype } of file.tensors.values()) {
    const peftName = nameIn("peft", name);
    const module = modules.get(parseLoraTensorName(peftName)?.path ?? "");
    const expected = shapes.get(peftName);
    if (!module || !expected) {
      if (!isBaseCopy(name)) problems.push(`"${name}" is not an adapter of a matrix of this model`);
      continue;
    }
    present.add(module);
    if (!sameShape(shape, expected)) {
      problems.push(
        `"${name}" has shape ${formatShape(shape)} instead of ${formatShape(expected)}`,
      );
    }
    if (!isStoredDtype(dtype)) problems.push(`"${name}" is stored as ${dtype}`);
  }
  for (const module of declaredModules(peft, [...modules.values()], problems)) present.add(module);
  for (const { path: modulePath } of present) {
    for (const name of Object.values(loraTensorNames(modulePath))) {
      if (!names.has(name)) problems.push(`"${name}" is missing`);
    }
  }
  if (present.size === 0) problems.push("it has no tensors");
  if (problems.length === 0) return new Set([...present].map(({ target }) => target));
  throw new EngineError(
    "unsupported_adapter",
    `The adapter ${file.path} does not fit the model: ${problems.join("; ")}.`,
  );
}

/** The matrices that `target_modules` promises; names that no matrix has are problems. */
function declaredModules(
  peft: PeftConfig,
  modules: readonly LoraModule[],
  problems: string[],
): LoraModule[] {
  const declared: LoraModule[] = [];
  const kinds = new Set(modules.map(({ target }) => target));
  for (const target of peft.targetModules ?? []) {
    const ending = /^(model\.)?unembed_tokens$/.test(target) ? "lm_head" : target;
    const named = modules.filter(({ path: p }) => p === ending || p.endsWith(`.${ending}`));
    if (named.length === 0) {
      problems.push(
        `"target_modules" names ${target}, but only ${[...kinds].join(", ")} can be adapted`,
      );
    }
    if (peft.coversAllLayers) declared.push(...named);
  }
  return declared;
}

// Flags travel in the metadata, because PEFT's own configuration has no place for them.
function readFlags(
  metadata: Readonly<Record<string, string>>,
  targets: readonly LoraTarget[],
): LoraFlags {
  const least = flagsOfTargets(targets);
  return {
    trainAttn: least.trainAttn || metadata["train_attn"] === "true",
    trainMlp: least.trainMlp || metadata["train_mlp"] === "true",
    trainUnembed: least.trainUnembed || metadata["train_unembed"] === "true",
  };
}

function readSeed(metadata: Readonly<Record<string, string>>): number | null {
  const text = metadata["seed"] ?? "";
  return /^\d+$/.test(text) ? Number(text) : null;
}
