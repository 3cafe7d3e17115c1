import type { ModelConfig } from "./model-config.js";
import { expectedTensors } from "./tensor-names.js";

/** Projections of the attention block that can carry an adapter; a model has those that its family has. */
export const attentionTargets = ["q_proj", "k_proj", "v_proj", "qkv_proj", "o_proj"] as const;

/** Projections of the feed-forward block that can carry an adapter. */
export const mlpTargets = ["gate_proj", "up_proj", "gate_up_proj", "down_proj"] as const;

/** The unembedding, which can carry an adapter too. */
export const unembedTargets = ["lm_head"] as const;

/** A kind of matrix that can carry an adapter, as PEFT's `target_modules` names it. */
export type LoraTarget =
  | (typeof attentionTargets)[number]
  | (typeof mlpTargets)[number]
  | (typeof unembedTargets)[number];

/** Every target, in the order in which they are listed and written. */
export const loraTargets: readonly LoraTarget[] = [
  ...attentionTargets,
  ...mlpTargets,
  ...unembedTargets,
];

/** Which blocks of a model an adapter trains. */
export interface LoraFlags {
  readonly trainAttn: boolean;
  readonly trainMlp: boolean;
  readonly trainUnembed: boolean;
}

/** One matrix that carries an adapter: A is [rank, inFeatures], B is [outFeatures, rank]. */
export interface LoraModule {
  /** Path in the model, such as `model.layers.0.self_attn.q_proj`. */
  readonly path: string;
  readonly target: LoraTarget;
  readonly inFeatures: number;
  readonly outFeatures: number;
}

/** Whether a name is that of a target. */
export function isLoraTarget(name: unknown): name is LoraTarget {
  return loraTargets.some((target) => target === name);
}

/** The targets that a set of flags covers, of whichever family. */
export function targetsOfFlags(flags: LoraFlags): LoraTarget[] {
  return [
    ...(flags.trainAttn ? attentionTargets : []),
    ...(flags.trainMlp ? mlpTargets : []),
    ...(flags.trainUnembed ? unembedTargets : []),
  ];
}

/** The narrowest flags that cover some targets. */
export function flagsOfTargets(targets: Iterable<LoraTarget>): LoraFlags {
  const present: ReadonlySet<LoraTarget> = new Set(targets);
  return {
    trainAttn: attentionTargets.some((target) => present.has(target)),
    trainMlp: mlpTargets.some((target) => present.has(target)),
    trainUnembed: present.has("lm_head"),
  };
}

/** Every matrix of a model that carries an adapter under these targets, in order of use. */
export function loraModules(config: ModelConfig, targets: Iterable<LoraTarget>): LoraModule[] {
  const wanted = new Set(targets);
  const modules: LoraModule[] = [];
  // An adapter on the unembedding is its own matrix even where the weight itself is shared.
  for (const [name, shape] of expectedTensors({ ...config, tiedEmbeddings: false })) {
    const [path, target] = /^(?:.*\.)?([^.]+)(?=\.weight$)/.exec(name) ?? [];
    if (path === undefined || !isLoraTarget(target) || !wanted.has(target)) continue;
    const [outFeatures = 0, inFeatures = 0] = shape;
    modules.push({ path, target, inFeatures, outFeatures });
  }
  return modules;
}
