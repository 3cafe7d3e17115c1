import { allLayerKinds } from "@tinker-ts/hub/weights";
import type { ModelRuntime } from "../model/model-runtime.js";
import { floatWeights, type ModelWeights, type WeightFeeds } from "../model/model-weights.js";
import { viewsAt, type Place } from "../model/parameter-layout.js";
import type { PassParameters } from "./pass.js";
import { compileGraph, type CompiledGraph } from "../graph/compile.js";
import { Dim } from "../graph/dim.js";
import { Graph } from "../graph/graph.js";
import { matmul, multiply, split } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { ModelConfig } from "../model/model-config.js";
import { declareAdapter } from "../model/projectors.js";
import { groupsOf, siteWidths, type Site, type SiteGroup } from "../model/sites.js";
import { at } from "../util/arrays.js";

/**
 * A copy of a model's weights with one adapter merged in, shared by all adapters of the model: each pass
 * fills it with its own adapter's values. It stays valid until those change or another adapter fills it.
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
    const kinds = allLayerKinds(this.#model.config);
    for (const [layer, base] of weights.layers.entries()) {
      await pause();
      const floats = floatWeights(base);
      const merged = await this.#merge(
        layer,
        floats,
        groupsOf(at(kinds, layer)),
        sites,
        parameters,
        valid,
      );
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

/** Name of the result that holds a site's weight with its adapter merged in. */
function mergedName(site: Site): string {
  return `merged.${site}`;
}

/** `W + scale B A` for the adapted sites of some groups. */
function mergeWeights(
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
