import { EngineError } from "../../errors.js";
import { decodeFloats, encodeFloats } from "../float-formats.js";
import { isStoredDtype, type SafetensorsFile } from "../safetensors.js";
import { embeddingName, unembeddingName } from "../tensor-names.js";
import type { StoredDtype, WeightSource } from "../weight-source.js";

// PEFT adds the base weights of embeddings to an adapter when it adapts the unembedding or when the
// vocabulary was resized. In the first case they repeat the base and can be left out; in the second
// they are part of what was trained, which cannot be represented. Only a comparison tells.

/** Whether a tensor of an adapter is a copy of base weights. */
export function isBaseCopy(name: string): boolean {
  return baseNameOf(name) !== null;
}

/** Refuses copies of base weights that differ from the base. */
export async function checkBaseCopies(
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
  const plain = name
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
