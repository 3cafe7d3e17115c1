import { allLayerKinds } from "./layer-kinds.js";
import { layerTensors, type LayerTensorKey } from "./layer-tensors.js";
import type { ModelConfig } from "./model-config.js";
import { inLayer, unembeddingName } from "./tensor-names.js";

/** Matrices of mixers that adapters of `trainAttn` change. */
const attentionKeys = [
  "q",
  "k",
  "v",
  "qkv",
  "o",
  "deltaQ",
  "deltaK",
  "deltaV",
  "deltaZ",
  "deltaOut",
  "convIn",
  "convOut",
  "mambaIn",
  "mambaOut",
] as const satisfies readonly LayerTensorKey[];

/** Matrices that are not trained here but may be changed by adapters from elsewhere. */
const untrainedKeys = ["deltaB", "deltaA"] as const satisfies readonly LayerTensorKey[];

/** Matrices that adapters of `trainMlp` change. */
const mlpKeys = ["gate", "up", "gateUp", "down"] as const satisfies readonly LayerTensorKey[];

/** The names of these matrices in all families; a model has those that its family has. */
const attentionTargets = [
  "q_proj",
  "k_proj",
  "v_proj",
  "qkv_proj",
  "o_proj",
  "in_proj_q",
  "in_proj_k",
  "in_proj_v",
  "in_proj_z",
  "in_proj",
  "out_proj",
] as const;

const mlpTargets = [
  "gate_proj",
  "up_proj",
  "gate_up_proj",
  "down_proj",
  "w1",
  "w2",
  "w3",
  "input_linear",
  "output_linear",
] as const;

/** Matrices that training does not change: the inputs of decay and strength of the delta rule. */
const untrainedTargets = ["in_proj_b", "in_proj_a"] as const;

/** The unembedding, which can carry an adapter too. */
const unembedTargets = ["lm_head"] as const;

/** A kind of matrix that can carry an adapter, as PEFT's `target_modules` names it. */
export type LoraTarget =
  | (typeof attentionTargets)[number]
  | (typeof untrainedTargets)[number]
  | (typeof mlpTargets)[number]
  | (typeof unembedTargets)[number];

/** Every target, in the order in which they are listed and written. */
export const loraTargets: readonly LoraTarget[] = [
  ...attentionTargets,
  ...untrainedTargets,
  ...mlpTargets,
  ...unembedTargets,
];

/** Whether matrices of this name are changed only by adapters from elsewhere, which can be sampled but not trained. */
export function isUntrained(target: LoraTarget): boolean {
  return untrainedTargets.some((own) => own === target);
}

/** The blocks of a model that an adapter trains. */
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
  /** The tensor that holds the matrix, and its first row there. */
  readonly tensor: string;
  readonly firstRow: number;
}

/** The targets that a set of flags covers, of any family. */
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
    trainAttn: [...attentionTargets, ...untrainedTargets].some((target) => present.has(target)),
    trainMlp: mlpTargets.some((target) => present.has(target)),
    trainUnembed: present.has("lm_head"),
  };
}

const adapted: ReadonlySet<LayerTensorKey> = new Set<LayerTensorKey>([
  ...attentionKeys,
  ...untrainedKeys,
  ...mlpKeys,
]);

/** Every matrix of a model that carries an adapter under these targets, in order of use. */
export function loraModules(config: ModelConfig, targets: Iterable<LoraTarget>): LoraModule[] {
  const wanted = new Set(targets);
  const modules: LoraModule[] = [];
  const add = (path: string, tensor: string, shape: readonly number[], firstRow = 0): void => {
    const target = path.split(".").at(-1);
    if (!isLoraTarget(target) || !wanted.has(target)) return;
    const [outFeatures = 0, inFeatures = 0] = shape;
    modules.push({ path, target, inFeatures, outFeatures, tensor, firstRow });
  };
  for (const [layer, kind] of allLayerKinds(config).entries()) {
    for (const { key, name, module, shape, firstRow } of layerTensors(config, kind)) {
      if (adapted.has(key)) add(inLayer(layer, module), inLayer(layer, name), shape, firstRow);
    }
  }
  // An adapter on the unembedding is its own matrix even where the weight itself is shared.
  add("lm_head", unembeddingName, [config.vocabSize, config.hiddenSize]);
  return modules;
}

function isLoraTarget(name: unknown): name is LoraTarget {
  return loraTargets.some((target) => target === name);
}
