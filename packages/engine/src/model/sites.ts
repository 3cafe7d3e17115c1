import type { LoraFlags } from "../files/lora-modules.js";
import type { ModelConfig } from "../files/model-config.js";

/** Linear layers of the transformer that an adapter can change; "qkv" and "gateUp" are several in one. */
export type Site = "q" | "k" | "v" | "qkv" | "o" | "gate" | "up" | "gateUp" | "down" | "head";

/** Sites that read the same value; their first LoRA factors are multiplied in one product. */
export type SiteGroup = "qkv" | "o" | "gateUp" | "down" | "head";

const separate: Readonly<Record<SiteGroup, readonly Site[]>> = {
  qkv: ["q", "k", "v"],
  o: ["o"],
  gateUp: ["gate", "up"],
  down: ["down"],
  head: ["head"],
};

const fused: Readonly<Record<SiteGroup, readonly Site[]>> = {
  ...separate,
  qkv: ["qkv"],
  gateUp: ["gateUp"],
};

/** The sites of a group. */
export function sitesOf({ fusedProjections }: ModelConfig, group: SiteGroup): readonly Site[] {
  return (fusedProjections === true ? fused : separate)[group];
}

/** Groups inside one transformer layer. */
export const layerGroups = ["qkv", "o", "gateUp", "down"] as const satisfies readonly SiteGroup[];

/** The sites inside one transformer layer. */
export function layerSitesOf(config: ModelConfig): readonly Site[] {
  return layerGroups.flatMap((group) => sitesOf(config, group));
}

/** The sites that adapters with these flags change. */
export function sitesOfFlags(config: ModelConfig, flags: LoraFlags): readonly Site[] {
  const groups: readonly SiteGroup[] = [
    ...(flags.trainAttn ? (["qkv", "o"] as const) : []),
    ...(flags.trainMlp ? (["gateUp", "down"] as const) : []),
    ...(flags.trainUnembed ? (["head"] as const) : []),
  ];
  return groups.flatMap((group) => sitesOf(config, group));
}

/** Widths of a linear layer. */
export interface SiteWidths {
  readonly inputs: number;
  readonly outputs: number;
}

/** Widths of a site's linear layer. */
export function siteWidths(config: ModelConfig, site: Site): SiteWidths {
  const { hiddenSize, intermediateSize, headDim } = config;
  const queryWidth = config.heads * headDim;
  const keyWidth = config.kvHeads * headDim;
  const widths: Readonly<Record<Site, SiteWidths>> = {
    q: { inputs: hiddenSize, outputs: queryWidth },
    k: { inputs: hiddenSize, outputs: keyWidth },
    v: { inputs: hiddenSize, outputs: keyWidth },
    qkv: { inputs: hiddenSize, outputs: queryWidth + 2 * keyWidth },
    o: { inputs: queryWidth, outputs: hiddenSize },
    gate: { inputs: hiddenSize, outputs: intermediateSize },
    up: { inputs: hiddenSize, outputs: intermediateSize },
    gateUp: { inputs: hiddenSize, outputs: 2 * intermediateSize },
    down: { inputs: intermediateSize, outputs: hiddenSize },
    head: { inputs: hiddenSize, outputs: config.vocabSize },
  };
  return widths[site];
}

/** Hugging Face's names of the sites inside a layer. */
const layerModules: Readonly<Record<Exclude<Site, "head">, string>> = {
  q: "self_attn.q_proj",
  k: "self_attn.k_proj",
  v: "self_attn.v_proj",
  qkv: "self_attn.qkv_proj",
  o: "self_attn.o_proj",
  gate: "mlp.gate_proj",
  up: "mlp.up_proj",
  gateUp: "mlp.gate_up_proj",
  down: "mlp.down_proj",
};

/** The Hugging Face module of a site, such as `model.layers.0.self_attn.q_proj`. */
export function siteModule(site: Site, layer: number): string {
  return site === "head" ? "lm_head" : `model.layers.${layer}.${layerModules[site]}`;
}
