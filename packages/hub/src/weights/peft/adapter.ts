import { loraModules, loraTargets, type LoraFlags, type LoraTarget } from "../lora-modules.js";
import type { ModelConfig } from "../model-config.js";

/** Values with their shape. */
export interface NamedTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** Tensors by name. */
export type NamedTensors = ReadonlyMap<string, NamedTensor>;

/**
 * A LoRA adapter in memory. The weight of each adapted matrix is W + alpha / rank * B A.
 *
 * `tensors` holds A and B, under PEFT's names, of every matrix that the flags cover. `targets` are
 * the kinds of matrices among them that the adapter was made for: an adapter from elsewhere may
 * have fewer than the flags cover. The others are zero in A and in B, so that they neither change
 * the model nor ever receive a gradient.
 */
export interface LoraAdapter extends LoraFlags {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: readonly LoraTarget[];
  /** The seed of the initial values; null if it is not known. */
  readonly seed: number | null;
  /** The name of the base model; null if it is not known. */
  readonly baseModel: string | null;
  /** The reason why it can be sampled but not trained; absent if it can be trained. */
  readonly samplingOnly?: string;
  readonly tensors: NamedTensors;
}

/** Adam's moments of each tensor of an adapter, under the same names. */
export interface OptimizerState {
  /** Number of steps taken. */
  readonly step: number;
  readonly firstMoments: NamedTensors;
  readonly secondMoments: NamedTensors;
}

/** PEFT's prefix of the path of a matrix. */
export const loraPrefix = "base_model.model.";

/**
 * Names of the factors of the unembedding: `lm_head`, which PEFT reads, or `model.unembed_tokens`, from which
 * the Python cookbook's merge finds the matrix also where it is tied to the embedding.
 */
export type AdapterLayout = "peft" | "tinker";

const unembedding = {
  peft: `${loraPrefix}lm_head.`,
  tinker: `${loraPrefix}model.unembed_tokens.`,
} as const satisfies Record<AdapterLayout, string>;

/** The name of a tensor in a layout, whatever layout it came in. */
export function nameIn(layout: AdapterLayout, name: string): string {
  const known = Object.values(unembedding).find((prefix) => name.startsWith(prefix));
  return known === undefined ? name : name.replace(known, unembedding[layout]);
}

/** PEFT's names of the two factors of a matrix, given its path in the model. */
export function loraTensorNames(modulePath: string): { a: string; b: string } {
  const prefix = `${loraPrefix}${modulePath}`;
  return { a: `${prefix}.lora_A.weight`, b: `${prefix}.lora_B.weight` };
}

/** The path of the matrix and the factor in a PEFT name, or null for other names. */
export function parseLoraTensorName(name: string): { path: string; factor: "a" | "b" } | null {
  const [, path, factor] = /^base_model\.model\.(.+)\.lora_([AB])\.weight$/.exec(name) ?? [];
  if (path === undefined) return null;
  return { path, factor: factor === "A" ? "a" : "b" };
}

/** The targets of some factors. */
export function loraTargetsOf(tensors: NamedTensors): LoraTarget[] {
  const kinds = new Set(
    [...tensors.keys()].map((name) => parseLoraTensorName(name)?.path.split(".").at(-1)),
  );
  return loraTargets.filter((target) => kinds.has(target));
}

/** The tensors of an adapter of this rank on these targets, with their shapes. */
export function adapterTensorShapes(
  config: ModelConfig,
  targets: Iterable<LoraTarget>,
  rank: number,
): Map<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>();
  for (const { path, inFeatures, outFeatures } of loraModules(config, targets)) {
    const { a, b } = loraTensorNames(path);
    shapes.set(a, [rank, inFeatures]);
    shapes.set(b, [outFeatures, rank]);
  }
  return shapes;
}
