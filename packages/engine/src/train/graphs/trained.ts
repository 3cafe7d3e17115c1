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
import { at } from "../../util/arrays.js";
import { differentiate, type GradientSeed } from "../../graph/differentiate.js";
import { keptValues, type KeptKind } from "../../graph/kept-values.js";

/** The parameters that training changes: adapters at some sites, or the model's own weights. */
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

/** The projector for the trained parameters. */
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

/** Values of a graph by the names of their feeds or results. */
export type NamedValues = Readonly<Record<string, Tensor>>;

/** Name of the result that holds the gradient of a feed. */
export function gradientName(feed: string): string {
  return `gradient.${feed}`;
}

/** Gradients of some values under their names as results. */
export function namedGradients(seeds: readonly GradientSeed[], wrt: NamedValues): NamedValues {
  const gradients = differentiate(seeds, Object.values(wrt));
  return Object.fromEntries(
    Object.keys(wrt).map((name, index) => [gradientName(name), at(gradients, index)]),
  );
}

/** A seed for every result, fed as its gradient. */
export function fedSeeds(results: NamedValues): readonly GradientSeed[] {
  return Object.entries(results).map(([name, of]) => ({
    of,
    gradient: of.graph.input(gradientName(name), of.shape),
  }));
}

/** Values computed for `results` and read by `gradients`, named so that one can pass them to the other. */
export function namedKept(
  results: NamedValues,
  gradients: NamedValues,
  kind: KeptKind,
  prefix = "kept",
): NamedValues {
  const kept = keptValues(Object.values(results), Object.values(gradients), kind);
  return Object.fromEntries(kept.map((tensor, index) => [`${prefix}.${index}`, tensor]));
}
