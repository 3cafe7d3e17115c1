import type { ModelConfig } from "../../files/model-config.js";
import { compileGraph, type CompiledGraph } from "../../graph/compile.js";
import { Dim } from "../../graph/dim.js";
import { Graph } from "../../graph/graph.js";
import { matmul, multiply, split } from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import { declareAdapter } from "../../model/projectors.js";
import { siteWidths, type Site, type SiteGroup } from "../../model/sites.js";
import { at } from "../../util/at.js";

/** Name of the result that holds a site's weight with its adapter merged in. */
export function mergedName(site: Site): string {
  return `merged.${site}`;
}

/** `W + scale B A` for the adapted sites of some groups. */
export function mergeWeights(
  config: ModelConfig,
  part: readonly SiteGroup[],
  sites: readonly Site[],
): CompiledGraph {
  const graph = new Graph();
  const adapter = declareAdapter(graph, config, part, sites);
  const outputs: Record<string, Tensor> = {};
  for (const { sites: own, a, b } of adapter.groups.values()) {
    const rank = Dim.symbol("rank");
    const firstFactors =
      own.length === 1
        ? [a]
        : split(
            a,
            0,
            own.map(() => rank),
          );
    for (const [index, site] of own.entries()) {
      const { inputs, outputs: width } = siteWidths(config, site);
      const weight = graph.input(site, [width, inputs]);
      const scaled = multiply(at(b, index), adapter.scale);
      outputs[mergedName(site)] = matmul(scaled, at(firstFactors, index), { plus: weight });
    }
  }
  return compileGraph(graph, { outputs });
}
