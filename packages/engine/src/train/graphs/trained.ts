import type { Tensor } from "../../graph/tensor.js";
import type { ModelConfig } from "../../model/model-config.js";
import {
  adaptedProjector,
  mergedProjector,
  siteBName,
  stackedAName,
  type AdapterInputs,
  type SiteLookup,
} from "../../model/projectors.js";
import type { Site } from "../../model/sites.js";
import type { Projector } from "../../model/transformer.js";
import { at } from "../../util/at.js";

/** What a training run changes: adapters at some sites, or the model's own weights. */
export type Trained =
  | {
      readonly kind: "adapter";
      readonly sites: readonly Site[];
      /** The weights that are fed contain the adapters already. */
      readonly merged: boolean;
    }
  | { readonly kind: "full" };

/** The sites that have an adapter. */
export function adaptedSites(trained: Trained): readonly Site[] {
  return trained.kind === "full" ? [] : trained.sites;
}

/** The projector for what is trained. */
export function trainedProjector(
  config: ModelConfig,
  trained: Trained,
  lookup: SiteLookup,
  adapter: AdapterInputs,
): Projector {
  const merged = trained.kind === "adapter" && trained.merged;
  const projector = merged ? mergedProjector : adaptedProjector;
  return projector(config, lookup, adapter);
}

/** Adapter tensors by feed name. */
export function adapterTensors(adapter: AdapterInputs, prefix = ""): Record<string, Tensor> {
  const tensors: Record<string, Tensor> = {};
  for (const [group, { sites, a, b }] of adapter.groups) {
    tensors[`${prefix}${stackedAName(group)}`] = a;
    for (const [index, site] of sites.entries()) {
      tensors[`${prefix}${siteBName(site)}`] = at(b, index);
    }
  }
  return tensors;
}
