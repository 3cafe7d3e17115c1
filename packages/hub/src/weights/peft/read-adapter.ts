import { isFile } from "../../files/paths.js";
import { EngineError } from "../engine-error.js";
import { readJsonObject } from "../file-helpers.js";
import { decodeFloats, encodeFloats } from "../float-formats.js";
import {
  flagsOfTargets,
  isUntrained,
  loraModules,
  loraTargets,
  targetsOfFlags,
  type LoraFlags,
  type LoraModule,
  type LoraTarget,
} from "../lora-modules.js";
import type { ModelConfig } from "../model-config.js";
import { isStoredDtype, SafetensorsFile } from "../safetensors.js";
import { elementCount, formatShape, sameShape } from "../safetensors-header.js";
import { embeddingName, unembeddingName } from "../tensor-names.js";
import type { StoredDtype, WeightSource } from "../weight-source.js";
import {
  adapterTensorShapes,
  loraTensorNames,
  nameIn,
  parseLoraTensorName,
  type LoraAdapter,
  type NamedTensor,
} from "./adapter.js";
import { parsePeftConfig, type PeftConfig } from "./config.js";
import path from "node:path";

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

/** Reads a PEFT adapter, from here or from elsewhere; all mismatches with the model are listed in one error. */
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
    const modules = loraModules(base.config, loraTargets);
    const names = peftNames(file, modules);
    const present = checkTensors(file, names, peft, modules, base.config);
    await checkBaseCopies(file, base.weights, signal);
    const targets = loraTargets.filter((target) => present.has(target));
    const flags = readFlags(file.metadata, targets);
    const held = [...targetsOfFlags(flags), ...targets.filter(isUntrained)];
    const tensors = new Map<string, NamedTensor>();
    for (const [name, shape] of adapterTensorShapes(base.config, held, peft.rank)) {
      const stored = names.get(name);
      tensors.set(name, { shape, data: await readPart(file, stored, shape, signal) });
    }
    const { rank, alpha, baseModel } = peft;
    const seed = readSeed(file.metadata);
    const reason = whySamplingOnly(names, targets);
    const samplingOnly = reason === undefined ? {} : { samplingOnly: reason };
    return { rank, alpha, baseModel, targets, ...flags, seed, ...samplingOnly, tensors };
  } finally {
    await file.close();
  }
}

/** The location of a matrix's factor in a file: a tensor, or some rows of one. */
interface StoredFactor {
  readonly name: string;
  /** The first row, if it is a part of a factor of fused matrices. */
  readonly firstRow?: number;
}

/**
 * The names of the tensors as PEFT has them, with their locations in the file. PEFT adapts the matrix of the files,
 * which may be several here: each then has the first factor of the whole and its own rows of the second.
 */
function peftNames(
  file: SafetensorsFile,
  modules: readonly LoraModule[],
): ReadonlyMap<string, StoredFactor> {
  const names = new Map<string, StoredFactor>();
  const parts = partsOfWholes(modules);
  const add = (peftName: string, factor: StoredFactor): void => {
    const before = names.get(peftName)?.name;
    if (before !== undefined) {
      throw new EngineError(
        "unsupported_adapter",
        `The adapter ${file.path} has the same matrix twice: "${before}" and "${factor.name}".`,
      );
    }
    names.set(peftName, factor);
  };
  for (const name of file.tensors.keys()) {
    const peftName = textModelName(name);
    const parsed = parseLoraTensorName(peftName);
    const own = parts.get(parsed?.path ?? "");
    if (own === undefined) add(peftName, { name });
    for (const { path: modulePath, firstRow } of own ?? []) {
      const factors = loraTensorNames(modulePath);
      if (parsed?.factor === "a") add(factors.a, { name, firstRow: 0 });
      else add(factors.b, { name, firstRow });
    }
  }
  return names;
}

/** PEFT's name of a tensor without the prefix of multi-part models. */
function textModelName(name: string): string {
  const wrapped =
    /^(base_model\.model\.)(?:model\.language_model\.|language_model\.(model\.|(?=lm_head)))/;
  const inner = (_: string, start: string, rest = "model."): string => start + rest;
  return nameIn("peft", name.replace(wrapped, inner));
}

/** Matrices that are parts of a fused one in the files, by the path of that one. */
function partsOfWholes(modules: readonly LoraModule[]): ReadonlyMap<string, LoraModule[]> {
  const parts = new Map<string, LoraModule[]>();
  for (const module of modules) {
    const whole = wholeOf(module);
    if (whole === module.path) continue;
    parts.set(whole, [...(parts.get(whole) ?? []), module]);
  }
  return parts;
}

/** The path of the matrix in the files that a matrix is a part of. */
function wholeOf({ tensor }: LoraModule): string {
  return tensor.replace(/\.weight$/, "");
}

/** The values of a factor; zeros where the file has none. */
async function readPart(
  file: SafetensorsFile,
  stored: StoredFactor | undefined,
  shape: readonly number[],
  signal: AbortSignal | undefined,
): Promise<Float32Array> {
  const length = elementCount(shape);
  if (stored === undefined) return new Float32Array(length);
  const { name, firstRow } = stored;
  if (firstRow === undefined) return file.readFloats(name, new Float32Array(length), signal);
  const start = firstRow * (shape[1] ?? 1);
  return (await file.readFloats(name, undefined, signal)).slice(start, start + length);
}

function whySamplingOnly(
  names: ReadonlyMap<string, StoredFactor>,
  targets: readonly LoraTarget[],
): string | undefined {
  const untrained = targets.filter(isUntrained);
  const [whole] = [...names.values()].filter(({ firstRow }) => firstRow !== undefined);
  if (whole !== undefined) {
    const target = parseLoraTensorName(whole.name)?.path.split(".").at(-1) ?? whole.name;
    return (
      `it has one adapter on ${target}, where each of its parts has its own here: training would give them ` +
      "different first factors, which PEFT's form cannot hold"
    );
  }
  if (untrained.length === 0) return undefined;
  return `it adapts ${untrained.join(" and ")}, which training leaves as they are`;
}

/** Compares the file with model and configuration; returns its targets. */
function checkTensors(
  file: SafetensorsFile,
  names: ReadonlyMap<string, StoredFactor>,
  peft: PeftConfig,
  modules: readonly LoraModule[],
  config: ModelConfig,
): ReadonlySet<LoraTarget> {
  const problems: string[] = [];
  const byPath = new Map(modules.map((module) => [module.path, module]));
  const shapes = new Map([
    ...adapterTensorShapes(config, loraTargets, peft.rank),
    ...wholeShapes(modules, peft.rank),
  ]);
  const present = new Set<LoraModule>();
  for (const peftName of names.keys()) {
    const module = byPath.get(parseLoraTensorName(peftName)?.path ?? "");
    if (module) present.add(module);
  }
  for (const { name, shape, dtype } of file.tensors.values()) {
    const expected = shapes.get(textModelName(name));
    if (!expected) {
      if (!isBaseCopy(name)) problems.push(`"${name}" is not an adapter of a matrix of this model`);
      continue;
    }
    if (!sameShape(shape, expected)) {
      problems.push(
        `"${name}" has shape ${formatShape(shape)} instead of ${formatShape(expected)}`,
      );
    }
    if (!isStoredDtype(dtype)) problems.push(`"${name}" is stored as ${dtype}`);
  }
  for (const module of declaredModules(peft, modules, problems)) present.add(module);
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

/** Names and shapes of the factors of fused matrices. */
function wholeShapes(modules: readonly LoraModule[], rank: number): Map<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>();
  for (const [whole, parts] of partsOfWholes(modules)) {
    const { a, b } = loraTensorNames(whole);
    const outputs = parts.reduce((sum, { outFeatures }) => sum + outFeatures, 0);
    shapes.set(a, [rank, parts[0]?.inFeatures ?? 0]);
    shapes.set(b, [outputs, rank]);
  }
  return shapes;
}

/** The matrices named by `target_modules`; unknown names are problems. */
function declaredModules(
  peft: PeftConfig,
  modules: readonly LoraModule[],
  problems: string[],
): LoraModule[] {
  const declared: LoraModule[] = [];
  const kinds = new Set(modules.map(({ target }) => target));
  for (const target of peft.targetModules ?? []) {
    const ending = /^(model\.)?unembed_tokens$/.test(target) ? "lm_head" : target;
    const isNamed = (p: string): boolean => p === ending || p.endsWith(`.${ending}`);
    const named = modules.filter((module) => isNamed(module.path) || isNamed(wholeOf(module)));
    if (named.length === 0) {
      problems.push(
        `"target_modules" names ${target}, but only ${[...kinds].join(", ")} can be adapted`,
      );
    }
    if (peft.coversAllLayers) declared.push(...named);
  }
  return declared;
}

// Flags are stored in the metadata, because PEFT's own configuration has no place for them.
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

// PEFT adds the base weights of embeddings to an adapter when it adapts the unembedding or when the
// vocabulary was resized. In the first case they repeat the base and can be left out; in the second
// they are part of what was trained, which cannot be represented. Only a comparison can decide.

/** Whether a tensor of an adapter is a copy of base weights. */
function isBaseCopy(name: string): boolean {
  return baseNameOf(name) !== null;
}

/** Rejects copies of base weights that differ from the base. */
async function checkBaseCopies(
  file: SafetensorsFile,
  weights: WeightSource | undefined,
  signal?: AbortSignal,
): Promise<void> {
  for (const { name, dtype } of file.tensors.values()) {
    const baseName = baseNameOf(name);
    if (baseName === null) continue;
    const source = weights?.tensors.has(baseName) ? baseName : embeddingName;
    if (!weights) throw refusal(file, name, "it can be compared only when the base is given");
    if (!isStoredDtype(dtype)) throw refusal(file, name, `it is stored as ${dtype}`);
    const copy = await file.readFloats(name, undefined, signal);
    const original = await weights.read(source, undefined, signal);
    if (!sameValues(copy, roundTo(dtype, original))) {
      throw refusal(file, name, `it differs from "${source}" of the base`);
    }
  }
}

function baseNameOf(name: string): string | null {
  const plain = textModelName(name)
    .replace(/^base_model\.model\./, "")
    .replace(/\.base_layer\.weight$/, ".weight");
  return plain === embeddingName || plain === unembeddingName ? plain : null;
}

function roundTo(dtype: StoredDtype, values: Float32Array): Float32Array {
  if (dtype === "F32") return values;
  const rounded = new Float32Array(values.length);
  decodeFloats(dtype, encodeFloats(dtype, values).slice().buffer, rounded, values.length);
  return rounded;
}

function sameValues(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}

function refusal(file: SafetensorsFile, name: string, problem: string): EngineError {
  return new EngineError(
    "unsupported_adapter",
    `The adapter ${file.path} contains embeddings ("${name}"), and ${problem}. Trained embeddings are not supported.`,
  );
}
