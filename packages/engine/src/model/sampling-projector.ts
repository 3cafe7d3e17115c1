import { Dim } from "../graph/dim.js";
import type { Graph } from "../graph/graph.js";
import {
  add,
  concat,
  dimAt,
  matmul,
  multiply,
  split,
  transpose,
  type Int8Weight,
} from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { ModelConfig } from "./model-config.js";
import { at } from "../util/arrays.js";
import {
  linearLayer,
  siteBName,
  stackedAName,
  type SiteLookup,
  type SiteTensors,
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

/** Factors of the ranks of a group with so many sites, [rows, sites * rank]. */
export type Membership = (sites: number) => Tensor;

/** Name of the feed that holds the factors of groups with so many sites. */
export function membershipName(sites: number): string {
  return `lora.membership.${sites}`;
}

/**
 * Declares the factor of every rank for every row. The adapters of a batch are joined into one of all their
 * ranks; a row has alpha / rank at its own adapter's ranks and 0 at the others, which adds exact zeros and so
 * changes nothing.
 */
export function membershipOf(graph: Graph, rows: Dim, prefix = ""): Membership {
  return (sites) => {
    const name = `${prefix}${membershipName(sites)}`;
    const shape = [rows, Dim.symbol("rank").times(sites)];
    return graph.inputs.get(name) ?? graph.input(name, shape);
  };
}

const bothTransposed = { transposeLeft: true, transposeRight: true };

/**
 * Projects with frozen weights plus the adapters of a batch. The left side of both products with factors is
 * the transposed one: the runtime then always sums up 128 terms at a time, in order. Otherwise it would
 * choose by the number of rows and threads, and a row's rounding would depend on the rest of its batch.
 */
export function samplingProjector(
  graph: Graph,
  config: ModelConfig,
  lookup: SiteLookup,
  membership: Membership,
  prefix: string,
): Projector {
  const rank = Dim.symbol("rank");
  return (group, value) => {
    const sites = sitesOf(config, group);
    const { inputs } = siteWidths(config, at(sites, 0));
    const stacked = rank.times(sites.length);
    const a = graph.input(`${prefix}${stackedAName(group)}`, [stacked, Dim.of(inputs)]);
    const products = matmul(transpose(value, [1, 0]), a, bothTransposed);
    const low = transpose(multiply(products, membership(sites.length)), [1, 0]);
    const parts =
      sites.length === 1
        ? [low]
        : split(
            low,
            0,
            sites.map(() => rank),
          );
    const bases = frozenProducts(value, sites.map(lookup));
    return sites.map((site, index) => {
      const { outputs } = siteWidths(config, site);
      const b = graph.input(`${prefix}${siteBName(site)}`, [Dim.of(outputs), rank]);
      return matmul(at(parts, index), b, { ...bothTransposed, plus: at(bases, index) });
    });
  };
}

/**
 * A group's products with frozen weights. In 8 bits they are joined into one: that gives the same bits, since sums of integers
 * are exact, and saves several small steps per layer for a single row.
 */
function frozenProducts(value: Tensor, layers: readonly SiteTensors[]): readonly Tensor[] {
  const weights = layers.flatMap(({ weight }) => ("scale" in weight ? [weight] : []));
  if (layers.length === 1 || weights.length < layers.length) {
    return layers.map(({ weight, bias }) => linearLayer(value, readOnce(weight), bias));
  }
  const widths = weights.map(({ scale }) => dimAt(scale, 0));
  const products = split(linearLayer(value, readOnce(joinedOutputs(weights))), 1, widths);
  return products.map((product, index) => {
    const bias = layers[index]?.bias;
    return bias === undefined ? product : add(product, bias);
  });
}

/** Weights one after the other, as one that has all of their outputs. */
function joinedOutputs(weights: readonly Int8Weight[]): Int8Weight {
  const transposed = concat(
    weights.map((weight) => weight.transposed),
    0,
  );
  const scale = concat(
    weights.map((weight) => weight.scale),
    0,
  );
  return { ...at(weights, 0), transposed, values: transpose(transposed, [1, 0]), scale };
}

/** A decoding step has few rows, so that reading the weights determines its time. */
function readOnce(weight: SiteWeight): SiteWeight {
  if ("dtype" in weight) return weight;
  if ("scale" in weight) return { ...weight, readOnce: true };
  return weight.map((part) => ("dtype" in part ? part : { ...part, readOnce: true }));
}
