import type { ModelConfig } from "../files/model-config.js";
import { membershipName } from "../model/sampling-projector.js";
import { siteBName, stackedAName } from "../model/projectors.js";
import { layerGroups, sitesOf, siteWidths, type Site, type SiteGroup } from "../model/sites.js";
import { viewsAt, type ParameterLayout, type Place } from "../model/parameter-layout.js";
import { headPrefix, ofLayer } from "./graphs/decoder.js";

/** An adapter whose values do not change any more. */
export interface FrozenAdapter {
  /** Tells adapters apart, also ones with equal values. */
  readonly id: string;
  readonly rank: number;
  /** alpha / rank */
  readonly scale: number;
  readonly sites: readonly Site[];
  readonly layout: ParameterLayout;
  readonly values: Float32Array;
}

/**
 * Ranks are filled up with zeros to a multiple of this, because kernels add several ranks at a time: only
 * if adapters begin at such a multiple, the place of an adapter among others has no influence on rounding.
 */
const rankStep = 8;

/** The model without an adapter, as one that adds nothing. */
export function noAdapter(): FrozenAdapter {
  return {
    id: "base",
    rank: rankStep,
    scale: 0,
    sites: [],
    layout: { length: 0, tensors: [], feeds: [] },
    values: new Float32Array(),
  };
}

/**
 * Adapters joined into one whose rank is the sum of theirs, as feeds of the decoder: per group the first
 * factors [site, adapter, rank][inputs], per site the second factors transposed, [adapter, rank][outputs].
 * A single adapter's first factors are used where they lie.
 */
export class AdapterSet {
  readonly rank: number;
  readonly feeds: Readonly<Record<string, Float32Array>>;
  readonly #adapters: readonly FrozenAdapter[];
  /** Numbers of sites that the groups of a layer have. */
  readonly #groupSizes: ReadonlySet<number>;
  #lastMembership:
    | { readonly key: string; readonly feeds: Readonly<Record<string, Float32Array>> }
    | undefined;

  constructor(config: ModelConfig, adapters: readonly FrozenAdapter[]) {
    this.#adapters = adapters;
    this.#groupSizes = new Set(layerGroups.map((group) => sitesOf(config, group).length));
    this.rank = adapters.reduce((sum, adapter) => sum + filledRank(adapter), 0);
    const joined: Record<string, Float32Array> = this.#groupFeeds(config, "outer", "head");
    for (let layer = 0; layer < config.layers; layer++) {
      for (const group of layerGroups) {
        const feeds = this.#groupFeeds(config, layer, group);
        for (const [name, data] of Object.entries(feeds)) joined[ofLayer(layer, name)] = data;
      }
    }
    this.feeds = joined;
  }

  /** The factors of all ranks, for the layers by sequence and for the head by row, as feeds. */
  membership(
    ofSequences: readonly string[],
    ofHeadRows: readonly string[],
  ): Readonly<Record<string, Float32Array>> {
    // The next token is mostly asked for the same sequences.
    const key = `${ofSequences.join()} ${ofHeadRows.join()}`;
    if (key !== this.#lastMembership?.key) {
      this.#lastMembership = { key, feeds: this.#membership(ofSequences, ofHeadRows) };
    }
    return this.#lastMembership.feeds;
  }

  #membership(
    ofSequences: readonly string[],
    ofHeadRows: readonly string[],
  ): Readonly<Record<string, Float32Array>> {
    const feeds: Record<string, Float32Array> = {
      [`${headPrefix}${membershipName(1)}`]: this.#factors(ofHeadRows, 1),
    };
    for (const sites of this.#groupSizes) {
      feeds[membershipName(sites)] = this.#factors(ofSequences, sites);
    }
    return feeds;
  }

  /** [sequences, sites * rank] */
  #factors(ids: readonly string[], sites: number): Float32Array {
    const factors = new Float32Array(ids.length * sites * this.rank);
    for (let row = 0; row < ids.length * sites; row++) {
      let start = row * this.rank;
      for (const adapter of this.#adapters) {
        const rank = filledRank(adapter);
        if (adapter.id === ids[Math.floor(row / sites)]) {
          factors.fill(adapter.scale, start, start + rank);
        }
        start += rank;
      }
    }
    return factors;
  }

  #groupFeeds(config: ModelConfig, place: Place, group: SiteGroup): Record<string, Float32Array> {
    const sites = sitesOf(config, group);
    const views = this.#adapters.map((adapter) => viewsAt(adapter.layout, adapter.values, place));
    const feeds: Record<string, Float32Array> = {
      [stackedAName(group)]: this.#firstFactors(config, group, views),
    };
    for (const site of sites) feeds[siteBName(site)] = this.#secondFactors(config, site, views);
    return feeds;
  }

  #firstFactors(
    config: ModelConfig,
    group: SiteGroup,
    views: readonly Record<string, Float32Array>[],
  ): Float32Array {
    const sites = sitesOf(config, group);
    const [adapter] = this.#adapters;
    const own = views[0]?.[stackedAName(group)];
    const complete =
      adapter !== undefined &&
      filledRank(adapter) === adapter.rank &&
      sites.every((site) => adapter.sites.includes(site));
    if (views.length === 1 && complete && own !== undefined) return own;
    const inputs = Math.max(...sites.map((site) => siteWidths(config, site).inputs));
    const joined = new Float32Array(sites.length * this.rank * inputs);
    let offset = 0;
    for (const site of sites) {
      for (const [index, one] of this.#adapters.entries()) {
        const { rank, sites: present } = one;
        const place = sites.filter((other) => present.includes(other)).indexOf(site);
        const stacked = views[index]?.[stackedAName(group)];
        if (place >= 0 && stacked !== undefined) {
          const start = place * rank * inputs;
          joined.set(stacked.subarray(start, start + rank * inputs), offset);
        }
        offset += filledRank(one) * inputs;
      }
    }
    return joined;
  }

  #secondFactors(
    config: ModelConfig,
    site: Site,
    views: readonly Record<string, Float32Array>[],
  ): Float32Array {
    const { outputs } = siteWidths(config, site);
    const joined = new Float32Array(this.rank * outputs);
    let offset = 0;
    for (const [index, adapter] of this.#adapters.entries()) {
      const b = views[index]?.[siteBName(site)];
      if (b !== undefined) transposeInto(joined.subarray(offset), b, outputs, adapter.rank);
      offset += filledRank(adapter) * outputs;
    }
    return joined;
  }
}

function filledRank({ rank }: FrozenAdapter): number {
  return Math.ceil(rank / rankStep) * rankStep;
}

function transposeInto(target: Float32Array, source: Float32Array, rows: number, columns: number) {
  for (let column = 0; column < columns; column++) {
    for (let row = 0; row < rows; row++) {
      target[column * rows + row] = source[row * columns + column] ?? 0;
    }
  }
}
