import { allLayerKinds } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "../model/model-config.js";
import { membershipName } from "../model/sampling-projector.js";
import { siteBName, stackedAName } from "../model/projectors.js";
import {
  groupsOf,
  layerGroupsOf,
  sitesOf,
  siteWidths,
  type Site,
  type SiteGroup,
} from "../model/sites.js";
import { viewsAt, type ParameterLayout, type Place } from "../model/parameter-layout.js";
import { headPrefix, ofLayer } from "./graphs/decoder.js";

/** An adapter with fixed values. */
export interface FrozenAdapter {
  /** Identity of the adapter; different even for equal values. */
  readonly id: string;
  readonly rank: number;
  /** alpha / rank */
  readonly scale: number;
  readonly sites: readonly Site[];
  readonly layout: ParameterLayout;
  readonly values: Float32Array;
}

/**
 * Ranks are padded with zeros to a multiple of this, because kernels add several ranks at a time: only
 * if adapters begin at such a multiple, the position of an adapter among others does not affect rounding.
 */
const rankStep = 8;

/** The runtime sums this many ranks at a time; an adapter that crosses such a border only in a batch would be rounded differently. */
const summedRanks = 128;

/** The model without an adapter, as an adapter of zeros. */
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
 * Adapters joined into one of all their ranks, as feeds of the decoder: per group the first factors
 * [site, adapter, rank][inputs], per site the second ones [outputs][adapter, rank]. A lone adapter is not copied.
 */
export class AdapterSet {
  readonly rank: number;
  readonly feeds: Readonly<Record<string, Float32Array>>;
  readonly #adapters: readonly PlacedAdapter[];
  /** Numbers of sites that the groups of a layer have. */
  readonly #groupSizes: ReadonlySet<number>;
  #lastMembership:
    | { readonly key: string; readonly feeds: Readonly<Record<string, Float32Array>> }
    | undefined;

  constructor(config: ModelConfig, adapters: readonly FrozenAdapter[]) {
    this.#adapters = placed(adapters);
    this.#groupSizes = new Set(layerGroupsOf(config).map((group) => sitesOf(config, group).length));
    const last = this.#adapters.at(-1);
    this.rank = last === undefined ? rankStep : last.place + filledRank(last.adapter);
    const joined: Record<string, Float32Array> = this.#groupFeeds(config, "outer", "head");
    for (const [layer, kind] of allLayerKinds(config).entries()) {
      for (const group of groupsOf(kind)) {
        const feeds = this.#groupFeeds(config, layer, group);
        for (const [name, data] of Object.entries(feeds)) joined[ofLayer(layer, name)] = data;
      }
    }
    this.feeds = joined;
  }

  /** The factors of all ranks, for rows of the layers and of the head with the given adapters, as feeds. */
  membership(
    ofRows: readonly string[],
    ofHeadRows: readonly string[],
  ): Readonly<Record<string, Float32Array>> {
    // Successive steps mostly have the same sequences.
    const key = `${ofRows.join()} ${ofHeadRows.join()}`;
    if (key !== this.#lastMembership?.key) {
      this.#lastMembership = { key, feeds: this.#membership(ofRows, ofHeadRows) };
    }
    return this.#lastMembership.feeds;
  }

  #membership(
    ofRows: readonly string[],
    ofHeadRows: readonly string[],
  ): Readonly<Record<string, Float32Array>> {
    const feeds: Record<string, Float32Array> = {
      [`${headPrefix}${membershipName(1)}`]: this.#factors(ofHeadRows, 1),
    };
    for (const sites of this.#groupSizes) {
      feeds[membershipName(sites)] = this.#factors(ofRows, sites);
    }
    return feeds;
  }

  /** [rows, sites * rank] */
  #factors(ids: readonly string[], sites: number): Float32Array {
    const factors = new Float32Array(ids.length * sites * this.rank);
    for (const [row, id] of ids.entries()) {
      const own = this.#adapters.find(({ adapter }) => adapter.id === id);
      if (own === undefined) continue;
      for (let site = 0; site < sites; site++) {
        const start = (row * sites + site) * this.rank + own.place;
        factors.fill(own.adapter.scale, start, start + own.adapter.rank);
      }
    }
    return factors;
  }

  #groupFeeds(config: ModelConfig, place: Place, group: SiteGroup): Record<string, Float32Array> {
    const views = this.#adapters.map(({ adapter }) =>
      viewsAt(adapter.layout, adapter.values, place),
    );
    const feeds: Record<string, Float32Array> = {
      [stackedAName(group)]: this.#firstFactors(config, group, views),
    };
    for (const site of sitesOf(config, group)) {
      feeds[siteBName(site)] = this.#secondFactors(config, site, views);
    }
    return feeds;
  }

  #firstFactors(
    config: ModelConfig,
    group: SiteGroup,
    views: readonly Record<string, Float32Array>[],
  ): Float32Array {
    const sites = sitesOf(config, group);
    const inputs = Math.max(...sites.map((site) => siteWidths(config, site).inputs));
    const length = sites.length * this.rank * inputs;
    const whole = wholeOf(views, stackedAName(group), length);
    if (whole !== undefined) return whole;
    const joined = new Float32Array(length);
    for (const [index, { adapter, place }] of this.#adapters.entries()) {
      const stacked = views[index]?.[stackedAName(group)];
      if (stacked === undefined) continue;
      const own = sites.filter((site) => adapter.sites.includes(site));
      const size = adapter.rank * inputs;
      for (const [order, site] of own.entries()) {
        const start = (sites.indexOf(site) * this.rank + place) * inputs;
        joined.set(stacked.subarray(order * size, (order + 1) * size), start);
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
    const length = outputs * this.rank;
    const whole = wholeOf(views, siteBName(site), length);
    if (whole !== undefined) return whole;
    const joined = new Float32Array(length);
    for (const [index, { adapter, place }] of this.#adapters.entries()) {
      const b = views[index]?.[siteBName(site)];
      if (b === undefined) continue;
      for (let output = 0; output < outputs; output++) {
        const row = b.subarray(output * adapter.rank, (output + 1) * adapter.rank);
        joined.set(row, output * this.rank + place);
      }
    }
    return joined;
  }
}

/** The tensor of an adapter that has all ranks: it need not be copied. */
function wholeOf(
  views: readonly Record<string, Float32Array>[],
  name: string,
  length: number,
): Float32Array | undefined {
  return views.find((view) => view[name]?.length === length)?.[name];
}

/** An adapter and the first of its ranks among all. */
interface PlacedAdapter {
  readonly adapter: FrozenAdapter;
  readonly place: number;
}

function placed(adapters: readonly FrozenAdapter[]): readonly PlacedAdapter[] {
  let end = 0;
  return adapters.map((adapter) => {
    const over = end % summedRanks;
    const crosses = over > 0 && over + filledRank(adapter) > summedRanks;
    const place = crosses ? end + summedRanks - over : end;
    end = place + filledRank(adapter);
    return { adapter, place };
  });
}

function filledRank({ rank }: FrozenAdapter): number {
  return Math.ceil(rank / rankStep) * rankStep;
}
