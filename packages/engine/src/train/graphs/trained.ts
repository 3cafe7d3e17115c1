import type { AdapterInputs } from "../../model/projectors.js";
import { adapterFeedNames } from "../../model/projectors.js";
import type { SiteGroup } from "../../model/sites.js";
import type { Tensor } from "../../graph/tensor.js";
import { at } from "../../util/at.js";

/** What a training run changes: adapters at some sites, or the model's own weights. */
export type Trained =
  | { readonly kind: "adapter"; readonly groups: readonly SiteGroup[] }
  | { readonly kind: "full" };

/** Name of the result that holds the gradient of a feed. */
export function gradientName(feed: string): string {
  return `gradient.${feed}`;
}

/** Name of the value `scale (x A^T)` of a group, saved by the forward pass. */
export function lowName(group: SiteGroup): string {
  return `low.${group}`;
}

/** The groups of a part of the model that have adapters. */
export function adaptedGroups(trained: Trained, part: readonly SiteGroup[]): readonly SiteGroup[] {
  return trained.kind === "full" ? [] : part.filter((group) => trained.groups.includes(group));
}

/** Adapter tensors by feed name. */
export function adapterTensors(adapter: AdapterInputs): Record<string, Tensor> {
  const tensors: Record<string, Tensor> = {};
  for (const [group, { a, b }] of adapter.groups) {
    const names = adapterFeedNames(group);
    tensors[names.a] = a;
    for (const [index, name] of names.b.entries()) tensors[name] = at(b, index);
  }
  return tensors;
}
