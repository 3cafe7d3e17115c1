import type { ModelConfig } from "./model-config.js";
import { siteBName, stackedAName } from "./projectors.js";
import { allLayerKinds } from "@tinker-ts/hub/weights";
import { groupsOf, siteModule, sitesOf, siteWidths, type Site, type SiteGroup } from "./sites.js";
import { layerWeightSpecs, outerWeightSpecs } from "./weights.js";
import { at } from "../util/arrays.js";

/** The layer that a parameter belongs to, or the part outside the layers. */
export type Place = number | "outer";

/** A named tensor inside the flat array of all parameters. */
export interface ParameterTensor {
  readonly name: string;
  readonly offset: number;
  readonly shape: readonly number[];
}

/** A stretch of the flat array that graphs read as one feed. */
export interface ParameterFeed {
  readonly place: Place;
  readonly feed: string;
  readonly offset: number;
  readonly length: number;
}

/**
 * The layout of trained parameters in one flat array.
 *
 * One array makes gradient sums, the optimizer and copies plain loops. First LoRA factors of sites that
 * read the same value are neighbours, so one feed spans them and one product computes them.
 */
export interface ParameterLayout {
  readonly length: number;
  readonly tensors: readonly ParameterTensor[];
  readonly feeds: readonly ParameterFeed[];
}

/** The layout of a LoRA adapter; tensors have the names that PEFT gives them. */
export function adapterLayout(
  config: ModelConfig,
  sites: readonly Site[],
  rank: number,
): ParameterLayout {
  const builder = new LayoutBuilder();
  const addGroup = (place: Place, group: SiteGroup): void => {
    const present = sitesOf(config, group).filter((site) => sites.includes(site));
    if (present.length === 0) return;
    const layer = place === "outer" ? 0 : place;
    const name = (site: Site, factor: string): string =>
      `base_model.model.${siteModule(config, site, layer)}.lora_${factor}.weight`;
    const { inputs } = siteWidths(config, at(present, 0));
    builder.addFeed(
      place,
      stackedAName(group),
      present.map((site) => ({ name: name(site, "A"), shape: [rank, inputs] })),
    );
    for (const site of present) {
      const shape = [siteWidths(config, site).outputs, rank];
      builder.addFeed(place, siteBName(site), [{ name: name(site, "B"), shape }]);
    }
  };
  for (const [layer, kind] of allLayerKinds(config).entries()) {
    for (const group of groupsOf(kind)) addGroup(layer, group);
  }
  addGroup("outer", "head");
  return builder.layout();
}

/** The layout of all weights of a model, under their Hugging Face names. */
export function fullLayout(config: ModelConfig): ParameterLayout {
  const builder = new LayoutBuilder();
  const outer = outerWeightSpecs(config);
  builder.addFeed("outer", "embedding", [outer.embedding]);
  for (let layer = 0; layer < config.layers; layer++) {
    for (const spec of layerWeightSpecs(config, layer)) builder.addFeed(layer, spec.key, [spec]);
  }
  builder.addFeed("outer", "finalNorm", [outer.finalNorm]);
  if (outer.head !== undefined) builder.addFeed("outer", "head", [outer.head]);
  return builder.layout();
}

/** The feeds of one place as views of an array that has the layout. */
export function viewsAt(
  layout: ParameterLayout,
  values: Float32Array,
  place: Place,
): Record<string, Float32Array> {
  const views: Record<string, Float32Array> = {};
  for (const { place: own, feed, offset, length } of layout.feeds) {
    if (own === place) views[feed] = values.subarray(offset, offset + length);
  }
  return views;
}

class LayoutBuilder {
  readonly #tensors: ParameterTensor[] = [];
  readonly #feeds: ParameterFeed[] = [];
  #length = 0;

  addFeed(
    place: Place,
    feed: string,
    parts: readonly {
      readonly name: string;
      readonly shape: readonly number[];
      readonly firstRow?: number;
    }[],
  ): void {
    const offset = this.#length;
    for (const { name, shape, firstRow = 0 } of parts) {
      const [rows = 0, ...columns] = shape;
      const before = firstRow > 0 ? this.#tensors.pop() : undefined;
      const whole = before === undefined ? shape : [firstRow + rows, ...columns];
      this.#tensors.push({ name, offset: before?.offset ?? this.#length, shape: whole });
      this.#length += shape.reduce((product, dim) => product * dim, 1);
    }
    this.#feeds.push({ place, feed, offset, length: this.#length - offset });
  }

  layout(): ParameterLayout {
    return { length: this.#length, tensors: this.#tensors, feeds: this.#feeds };
  }
}
