import type { ModelConfig } from "../files/model-config.js";

/** Linear layers of the transformer that an adapter can change. */
export type Site = "q" | "k" | "v" | "o" | "gate" | "up" | "down" | "head";

/** Sites that read the same value; their first LoRA factors are multiplied in one product. */
export type SiteGroup = "qkv" | "o" | "gateUp" | "down" | "head";

export const sitesOf: Readonly<Record<SiteGroup, readonly Site[]>> = {
  qkv: ["q", "k", "v"],
  o: ["o"],
  gateUp: ["gate", "up"],
  down: ["down"],
  head: ["head"],
};

/** Groups inside one transformer layer. */
export const layerGroups = ["qkv", "o", "gateUp", "down"] as const satisfies readonly SiteGroup[];

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
    o: { inputs: queryWidth, outputs: hiddenSize },
    gate: { inputs: hiddenSize, outputs: intermediateSize },
    up: { inputs: hiddenSize, outputs: intermediateSize },
    down: { inputs: intermediateSize, outputs: hiddenSize },
    head: { inputs: hiddenSize, outputs: config.vocabSize },
  };
  return widths[site];
}

/** The Hugging Face module of a site, such as `model.layers.0.self_attn.q_proj`. */
export function siteModule(site: Site, layer: number): string {
  if (site === "head") return "lm_head";
  const block = site === "gate" || site === "up" || site === "down" ? "mlp" : "self_attn";
  return `model.layers.${layer}.${block}.${site}_proj`;
}
