import type { ModelRuntime } from "../model/model-runtime.js";
import { floatWeights, type ModelWeights, type WeightFeeds } from "../model/model-weights.js";
import { layerGroups, type Site, type SiteGroup } from "../model/sites.js";
import { mergedName, mergeWeights } from "./graphs/merge.js";
import { viewsAt, type Place } from "../model/parameter-layout.js";
import type { PassParameters } from "./pass.js";

/**
 * A copy of a model's weights with one adapter merged in, shared by all adapters of the model: whoever
 * trains has it filled with its own values. It stays valid until those change or another one fills it.
 */
export class MergedWeights {
  readonly #model: ModelRuntime;
  readonly #arrays = new Map<string, Float32Array>();
  #filled: { readonly values: Float32Array; readonly version: number } | undefined;

  constructor(model: ModelRuntime) {
    this.#model = model;
  }

  /** The weights with an adapter merged in. */
  async fill(
    parameters: PassParameters,
    sites: readonly Site[],
    pause: () => Promise<void>,
  ): Promise<ModelWeights> {
    const weights = await this.#model.trainingWeights();
    const { values, version } = parameters;
    const valid = this.#filled?.values === values && this.#filled.version === version;
    this.#filled = undefined;
    const layers: WeightFeeds[] = [];
    for (const [layer, base] of weights.layers.entries()) {
      await pause();
      const floats = floatWeights(base);
      const merged = await this.#merge(layer, floats, layerGroups, sites, parameters, valid);
      layers.push({ ...base, ...merged });
    }
    const outer = floatWeights(weights.outer);
    const merged = await this.#merge("outer", outer, ["head"], sites, parameters, valid);
    this.#filled = { values, version };
    return { ...weights, layers, outer: { ...outer, ...merged } };
  }

  async #merge(
    place: Place,
    base: Readonly<Record<string, Float32Array>>,
    part: readonly SiteGroup[],
    sites: readonly Site[],
    parameters: PassParameters,
    valid: boolean,
  ): Promise<Record<string, Float32Array>> {
    const { config, programs } = this.#model;
    const key = `merge ${part.join()} ${sites.join()}`;
    const compile = () => mergeWeights(config, part, sites);
    const own = sites.filter((site) => site in base);
    const merged: Record<string, Float32Array> = {};
    const results: Record<string, Float32Array> = {};
    for (const site of own) {
      const array = this.#array(`${place} ${site}`, base[site]?.length ?? 0);
      merged[site] = array;
      results[mergedName(site)] = array;
    }
    if (own.length === 0 || valid) return merged;
    const { layout, values, rank, scale } = parameters;
    const feeds = {
      ...base,
      ...viewsAt(layout, values, place),
      "lora.scale": Float32Array.of(scale),
    };
    const program = await programs.get(key, compile);
    await program.run(feeds, results, { rank });
    return merged;
  }

  #array(key: string, length: number): Float32Array {
    const array = this.#arrays.get(key) ?? new Float32Array(length);
    this.#arrays.set(key, array);
    return array;
  }
}
