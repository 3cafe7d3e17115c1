import {
  allLayerKinds,
  inLayer,
  kindKey,
  layerTensors,
  mixerOf,
  type LayerKind,
  type LayerTensor,
  type LayerTensorKey,
  type LoraFlags,
  type Mixer,
} from "@tinker-ts/hub/weights";
import type { ModelConfig } from "./model-config.js";

/** Linear layers that read the same value; the first LoRA factors of a group are multiplied in one product. */
const groups = {
  qkv: ["q", "k", "v", "qkv"],
  o: ["o"],
  deltaIn: ["deltaQ", "deltaK", "deltaV", "deltaZ"],
  deltaGates: ["deltaB", "deltaA"],
  deltaOut: ["deltaOut"],
  convIn: ["convIn"],
  convOut: ["convOut"],
  mambaIn: ["mambaIn"],
  mambaOut: ["mambaOut"],
  gateUp: ["gate", "up", "gateUp"],
  down: ["down"],
  head: ["head"],
} as const satisfies Record<string, readonly (LayerTensorKey | "head")[]>;

/** Sites that read the same value. */
export type SiteGroup = keyof typeof groups;

/** Linear layers of the transformer that an adapter can change; "qkv" and "gateUp" are several in one. */
export type Site = (typeof groups)[SiteGroup][number];

type LayerSite = Exclude<Site, "head">;

const mixerGroups: Readonly<Record<Mixer, readonly SiteGroup[]>> = {
  attention: ["qkv", "o"],
  deltaRule: ["deltaIn", "deltaGates", "deltaOut"],
  convolution: ["convIn", "convOut"],
  mamba: ["mambaIn", "mambaOut"],
};

/** Groups that no flag covers: only adapters from elsewhere may change them. */
const untrained: ReadonlySet<SiteGroup> = new Set<SiteGroup>(["deltaGates"]);

/** The sites of a group. */
export function sitesOf(config: ModelConfig, group: SiteGroup): readonly Site[] {
  const { fusedQkv = false, fusedGateUp = false } = config;
  if (group === "qkv") return fusedQkv ? ["qkv"] : ["q", "k", "v"];
  if (group === "gateUp") return fusedGateUp ? ["gateUp"] : ["gate", "up"];
  return groups[group];
}

/** The groups inside a layer of some kind. */
export function groupsOf(kind: LayerKind): readonly SiteGroup[] {
  return [...mixerGroups[mixerOf(kind)], "gateUp", "down"];
}

/** The kinds of layers that a model has, each once. */
export function distinctKinds(config: ModelConfig): readonly LayerKind[] {
  return [...new Map(allLayerKinds(config).map((kind) => [kindKey(kind), kind])).values()];
}

/** The groups that some layer has. */
export function layerGroupsOf(config: ModelConfig): readonly SiteGroup[] {
  return [...new Set(distinctKinds(config).flatMap(groupsOf))];
}

/** The sites that some layer has and that training can change. */
export function layerSitesOf(config: ModelConfig): readonly Site[] {
  const trained = layerGroupsOf(config).filter((group) => !untrained.has(group));
  return trained.flatMap((group) => sitesOf(config, group));
}

/** The sites that adapters with these flags change. */
export function sitesOfFlags(config: ModelConfig, flags: LoraFlags): readonly Site[] {
  const chosen = layerGroupsOf(config).filter((group) => {
    if (untrained.has(group)) return false;
    return group === "gateUp" || group === "down" ? flags.trainMlp : flags.trainAttn;
  });
  const sites = chosen.flatMap((group) => sitesOf(config, group));
  return flags.trainUnembed ? [...sites, "head"] : sites;
}

/** The sites that sampling-only adapters with these flags change, including those that cannot be trained here. */
export function sampledSitesOfFlags(config: ModelConfig, flags: LoraFlags): readonly Site[] {
  const groupsHere = layerGroupsOf(config).filter((group) => untrained.has(group));
  const more = flags.trainAttn ? groupsHere.flatMap((group) => sitesOf(config, group)) : [];
  return [...sitesOfFlags(config, flags), ...more];
}

/** Widths of a linear layer. */
export interface SiteWidths {
  readonly inputs: number;
  readonly outputs: number;
}

/** Widths of a site's linear layer. */
export function siteWidths(config: ModelConfig, site: Site): SiteWidths {
  if (site === "head") return { inputs: config.hiddenSize, outputs: config.vocabSize };
  const [outputs = 0, inputs = 0] = tensorOf(config, site).shape;
  return { inputs, outputs };
}

/** The Hugging Face module of a site, such as `model.layers.0.self_attn.q_proj`. */
export function siteModule(config: ModelConfig, site: Site, layer: number): string {
  return site === "head" ? "lm_head" : inLayer(layer, tensorOf(config, site).module);
}

const known = new WeakMap<ModelConfig, Map<LayerTensorKey, LayerTensor>>();

function tensorOf(config: ModelConfig, site: LayerSite): LayerTensor {
  let tensors = known.get(config);
  if (tensors === undefined) {
    const all = distinctKinds(config).flatMap((kind) => layerTensors(config, kind));
    tensors = new Map(all.map((tensor) => [tensor.key, tensor]));
    known.set(config, tensors);
  }
  const found = tensors.get(site);
  if (found === undefined) throw new Error(`no layer of the model has ${site}`);
  return found;
}
