import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import {
  add,
  concat,
  int8Linear,
  linear,
  multiply,
  split,
  stopGradient,
  withHiddenProduct,
  type Int8Weight,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { ModelConfig } from "./model-config.js";
import { at } from "../util/arrays.js";
import { siteWidths, sitesOf, type Site, type SiteGroup } from "./sites.js";
import type { Projector } from "./transformer.js";

/** A frozen matrix, whole or split by outputs. */
export type SiteWeight = Tensor | Int8Weight | readonly (Tensor | Int8Weight)[];

/** The frozen linear layer of a site. */
export interface SiteTensors {
  readonly weight: SiteWeight;
  readonly bias?: Tensor | undefined;
}

/** Linear layers by site. */
export type SiteLookup = (site: Site) => SiteTensors;

/** Projects with the frozen weights alone. */
export function plainProjector(config: ModelConfig, lookup: SiteLookup): Projector {
  return (group, value) =>
    sitesOf(config, group).map((site) => {
      const { weight, bias } = lookup(site);
      return linearLayer(value, weight, bias);
    });
}

/** A linear layer, plus a matrix or row vector. */
export function linearLayer(value: Tensor, weight: SiteWeight, plus?: Tensor): Tensor {
  if ("dtype" in weight) return linear(value, weight, plus);
  const product =
    "scale" in weight
      ? int8Linear(value, weight)
      : concat(
          weight.map((part) => linearLayer(value, part)),
          1,
        );
  return plus === undefined ? product : add(product, plus);
}

/** The two factors of a group's adapter; the first factors of its sites are stacked. */
export interface GroupAdapter {
  readonly sites: readonly Site[];
  /** [sites * rank, inputs] */
  readonly a: Tensor;
  /** Per site, [outputs, rank]. */
  readonly b: readonly Tensor[];
}

/** The LoRA inputs of a training graph. */
export interface AdapterInputs {
  readonly groups: ReadonlyMap<SiteGroup, GroupAdapter>;
  /** alpha / rank, [1]. */
  readonly scale: Tensor;
}

/** Name of the feed that holds a group's stacked first factors. */
export function stackedAName(group: SiteGroup): string {
  return `lora.${group}.a`;
}

/** Name of the feed that holds a site's second factor. */
export function siteBName(site: Site): string {
  return `lora.${site}.b`;
}

/** Declares the adapters of some sites, with the rank left open; all of a graph share one scale. */
export function declareAdapter(
  graph: Graph,
  config: ModelConfig,
  part: readonly SiteGroup[],
  adapted: readonly Site[],
  prefix = "",
): AdapterInputs {
  const rank = Dim.symbol("rank");
  const groups = new Map<SiteGroup, GroupAdapter>();
  for (const group of part) {
    const sites = sitesOf(config, group).filter((site) => adapted.includes(site));
    if (sites.length === 0) continue;
    const { inputs } = siteWidths(config, at(sites, 0));
    groups.set(group, {
      sites,
      a: graph.input(`${prefix}${stackedAName(group)}`, [rank.times(sites.length), inputs]),
      b: sites.map((site) =>
        graph.input(`${prefix}${siteBName(site)}`, [siteWidths(config, site).outputs, rank]),
      ),
    });
  }
  const scale = graph.inputs.get("lora.scale") ?? graph.input("lora.scale", [1]);
  return { groups, scale };
}

/** Projects with frozen weights plus adapters: `x W^T + scale (x A^T) B^T`. */
export function adaptedProjector(
  config: ModelConfig,
  lookup: SiteLookup,
  adapter: AdapterInputs,
): Projector {
  const plain = plainProjector(config, lookup);
  return (group, value) => {
    const bases = plain(group, value);
    const factors = adapter.groups.get(group);
    if (factors === undefined) return bases;
    const low = lowProduct(value, factors, adapter.scale);
    return withSites(sitesOf(config, group), factors, low, bases, (base, part, b) =>
      linear(part, b, base),
    );
  };
}

/**
 * Projects with weights that contain the merged adapters, `W + scale B A`. The forward pass costs
 * nothing more than without adapters; gradients of the factors are those of `adaptedProjector`.
 */
export function mergedProjector(
  config: ModelConfig,
  lookup: SiteLookup,
  adapter: AdapterInputs,
): Projector {
  const plain = plainProjector(config, lookup);
  return (group, value) => {
    const sums = plain(group, value);
    const factors = adapter.groups.get(group);
    if (factors === undefined) return sums;
    // The gradient of `value` comes from the merged weights alone.
    const low = lowProduct(stopGradient(value), factors, adapter.scale);
    return withSites(sitesOf(config, group), factors, low, sums, withHiddenProduct);
  };
}

/** `scale (x A^T)` of all sites of a group, side by side. */
function lowProduct(value: Tensor, factors: GroupAdapter, scale: Tensor): Tensor {
  return multiply(linear(value, factors.a), scale);
}

/** Combines the values of a group's adapted sites with their parts of the low product. */
function withSites(
  all: readonly Site[],
  { sites, b }: GroupAdapter,
  low: Tensor,
  values: readonly Tensor[],
  combine: (value: Tensor, part: Tensor, b: Tensor) => Tensor,
): readonly Tensor[] {
  const rank = Dim.symbol("rank");
  const parts =
    sites.length === 1
      ? [low]
      : split(
          low,
          1,
          sites.map(() => rank),
        );
  return all.map((site, index) => {
    const value = at(values, index);
    const place = sites.indexOf(site);
    return place < 0 ? value : combine(value, at(parts, place), at(b, place));
  });
}
