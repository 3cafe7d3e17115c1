import type { ModelConfig } from "../files/model-config.js";
import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import { linear, multiply, split } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import { at } from "../util/at.js";
import { siteWidths, sitesOf, type Site, type SiteGroup } from "./sites.js";
import type { Projector } from "./transformer.js";

/** The frozen linear layer of a site. */
export interface SiteTensors {
  readonly weight: Tensor;
  readonly bias?: Tensor | undefined;
}

/** Linear layers by site. */
export type SiteLookup = (site: Site) => SiteTensors;

/** Projects with the frozen weights alone. */
export function plainProjector(lookup: SiteLookup): Projector {
  return (group, value) =>
    sitesOf[group].map((site) => {
      const { weight, bias } = lookup(site);
      return linear(value, weight, bias);
    });
}

/** The two factors of a group's adapter; the first factors of its sites are stacked. */
export interface GroupAdapter {
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

/** Names of a group's adapter among the feeds of a graph. */
export function adapterFeedNames(group: SiteGroup): {
  readonly a: string;
  readonly b: readonly string[];
} {
  return { a: `lora.${group}.a`, b: sitesOf[group].map((site) => `lora.${site}.b`) };
}

/** Declares the adapters of some groups, with the rank left open. */
export function declareAdapter(
  graph: Graph,
  config: ModelConfig,
  groups: readonly SiteGroup[],
): AdapterInputs {
  const rank = Dim.symbol("rank");
  const declare = (group: SiteGroup): GroupAdapter => {
    const names = adapterFeedNames(group);
    const sites = sitesOf[group];
    const { inputs } = siteWidths(config, at(sites, 0));
    return {
      a: graph.input(names.a, [rank.times(sites.length), inputs]),
      b: sites.map((site, index) =>
        graph.input(at(names.b, index), [siteWidths(config, site).outputs, rank]),
      ),
    };
  };
  return {
    groups: new Map(groups.map((group) => [group, declare(group)])),
    scale: graph.input("lora.scale", [1]),
  };
}

/**
 * Projects with frozen weights plus adapters: `x W^T + scale (x A^T) B^T`. `lows` receives each group's
 * `scale (x A^T)`, which the gradient of B needs.
 */
export function adaptedProjector(
  lookup: SiteLookup,
  adapter: AdapterInputs,
  lows: Map<SiteGroup, Tensor>,
): Projector {
  const plain = plainProjector(lookup);
  return (group, value) => {
    const bases = plain(group, value);
    const factors = adapter.groups.get(group);
    if (factors === undefined) return bases;
    const low = multiply(linear(value, factors.a), adapter.scale);
    lows.set(group, low);
    const parts =
      bases.length === 1
        ? [low]
        : split(
            low,
            1,
            bases.map(() => Dim.symbol("rank")),
          );
    return bases.map((base, index) => linear(at(parts, index), at(factors.b, index), base));
  };
}
