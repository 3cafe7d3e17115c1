import type { ModelConfig } from "../files/model-config.js";
import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import { add, multiply, reshape, split, stackMatmul } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import { at } from "../util/at.js";
import {
  linearLayer,
  siteBName,
  stackedAName,
  type SiteLookup,
  type SiteWeight,
} from "./projectors.js";
import { siteWidths, sitesOf } from "./sites.js";
import type { Projector } from "./transformer.js";

/** Rows of a batch: `newTokens` of each of `sequences`. */
export interface SequenceRows {
  readonly sequences: Dim;
  readonly newTokens: Dim;
}

/** Declares the rows of a batch. */
export function sequenceRows(): SequenceRows {
  return { sequences: Dim.symbol("sequences"), newTokens: Dim.symbol("newTokens") };
}

/** Factors of the ranks of a group with so many sites, [sequences, 1, sites * rank]. */
export type Membership = (sites: number) => Tensor;

/** Name of the feed that holds the factors of groups with so many sites. */
export function membershipName(sites: number): string {
  return `lora.membership.${sites}`;
}

/**
 * Declares the factor of every rank for every sequence. The adapters of a batch are joined into one whose
 * rank is the sum of theirs; a sequence has alpha / rank at its own adapter's ranks and 0 at the others,
 * which adds exact zeros and so changes nothing.
 */
export function membershipOf(graph: Graph, { sequences }: SequenceRows, prefix = ""): Membership {
  return (sites) => {
    const name = `${prefix}${membershipName(sites)}`;
    const shape = [sequences, 1, Dim.symbol("rank").times(sites)];
    return graph.inputs.get(name) ?? graph.input(name, shape);
  };
}

/**
 * Projects with frozen weights plus the adapters of a batch. The rows of a sequence are multiplied on
 * their own, so that the result does not depend on which sequences stand beside it. Second factors are
 * fed transposed, [rank, outputs]: the kernel for single rows then adds rank after rank.
 */
export function samplingProjector(
  graph: Graph,
  config: ModelConfig,
  lookup: SiteLookup,
  rows: SequenceRows,
  membership: Membership,
  prefix: string,
): Projector {
  const rank = Dim.symbol("rank");
  const { sequences, newTokens } = rows;
  return (group, value) => {
    const sites = sitesOf(config, group);
    const { inputs } = siteWidths(config, at(sites, 0));
    const stacked = rank.times(sites.length);
    const a = graph.input(`${prefix}${stackedAName(group)}`, [1, 1, stacked, inputs]);
    const blocks = reshape(value, [sequences, newTokens, inputs]);
    const products = stackMatmul(blocks, a, { transposeRight: true });
    const low = multiply(products, membership(sites.length));
    const parts =
      sites.length === 1
        ? [low]
        : split(
            low,
            3,
            sites.map(() => rank),
          );
    return sites.map((site, index) => {
      const { outputs } = siteWidths(config, site);
      const b = graph.input(`${prefix}${siteBName(site)}`, [1, 1, 1, rank, outputs]);
      const delta = reshape(stackMatmul(at(parts, index), b), [
        sequences.times(newTokens),
        outputs,
      ]);
      const { weight, bias } = lookup(site);
      return linearLayer(value, readOnce(weight), bias === undefined ? delta : add(delta, bias));
    });
  };
}

/** A step of decoding has few rows: how long it takes is how long reading the weights takes. */
function readOnce(weight: SiteWeight): SiteWeight {
  if ("dtype" in weight) return weight;
  if ("scale" in weight) return { ...weight, readOnce: true };
  return weight.map((part) => ("dtype" in part ? part : { ...part, readOnce: true }));
}
