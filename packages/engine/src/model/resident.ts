import type { DeviceArray } from "../execution/device-array.js";
import { DeviceMemory } from "../gpu/device-memory.js";
import type { PortValues, ProgramOptions, Traffic } from "../execution/program.js";
import type { HeldLayers } from "./model-runtime.js";
import { floatWeights, type FedWeights, type WeightFeeds } from "./model-weights.js";
import type { ParameterLayout, Place } from "./parameter-layout.js";
import type { RotaryAngles } from "./rotary-tables.js";

/** Parameters as they are at one moment. */
interface Parameters {
  readonly layout: ParameterLayout;
  readonly values: Float32Array;
  /** Changes whenever the values do. */
  readonly version: number;
}

/**
 * Data that stays on a device: the model's weights, its angles, and the parameters in training.
 *
 * Everything is copied there when it is first needed. Parameters are copied again when they have changed, which
 * is once a step, and are replaced when another adapter is trained.
 */
export class Resident {
  readonly memory: DeviceMemory;
  /** For programs of the device; they count what they move. */
  readonly options: ProgramOptions;
  readonly traffic: Traffic = { toDeviceBytes: 0, fromDeviceBytes: 0 };
  readonly #layers: HeldLayers;
  readonly #outer: WeightFeeds;
  #feeds: Promise<FedWeights> | undefined;
  #angles: { readonly of: RotaryAngles; readonly feeds: Record<string, DeviceArray> } | undefined;
  #parameters:
    | (Parameters & { readonly places: Map<Place, Record<string, DeviceArray>> })
    | undefined;

  constructor(layers: HeldLayers, outer: WeightFeeds, options: ProgramOptions) {
    this.#layers = layers;
    this.#outer = outer;
    this.options = { ...options, traffic: this.traffic };
    this.memory = new DeviceMemory(this.options);
  }

  /** The model's weights. */
  weights(): Promise<FedWeights> {
    this.#feeds ??= this.#bringWeights();
    this.#feeds.catch(() => (this.#feeds = undefined));
    return this.#feeds;
  }

  /** The angles of all rotations. */
  async rotary(angles: RotaryAngles): Promise<PortValues> {
    if (this.#angles?.of === angles) return this.#angles.feeds;
    const old = this.#angles;
    this.#angles = { of: angles, feeds: await this.#bring(angles.feeds) };
    if (old !== undefined) this.memory.giveBack(...Object.values(old.feeds));
    return this.#angles.feeds;
  }

  /** Trained parameters by place. */
  async parameters({ layout, values, version }: Parameters): Promise<(place: Place) => PortValues> {
    const known = this.#parameters;
    if (known?.values !== values || known.version !== version) {
      this.#parameters = undefined;
      for (const feeds of known?.places.values() ?? []) {
        this.memory.giveBack(...Object.values(feeds));
      }
      const places = new Map<Place, Record<string, DeviceArray>>();
      this.#parameters = { layout, values, version: NaN, places };
      for (const { place, feed, offset, length } of layout.feeds) {
        const own = places.get(place) ?? {};
        places.set(place, own);
        own[feed] = await this.memory.upload(values.subarray(offset, offset + length));
      }
      this.#parameters = { layout, values, version, places };
    }
    const places = this.#parameters?.places;
    return (place) => places?.get(place) ?? {};
  }

  async release(): Promise<void> {
    await this.memory.release();
  }

  async #bringWeights(): Promise<FedWeights> {
    const brought: Record<string, DeviceArray>[] = [];
    for (const layer of await this.#layers.all()) {
      brought.push(await this.#bring(floatWeights(layer)));
    }
    return { layers: brought, outer: await this.#bring(floatWeights(this.#outer)) };
  }

  async #bring(
    feeds: Readonly<Record<string, Float32Array>>,
  ): Promise<Record<string, DeviceArray>> {
    const brought: Record<string, DeviceArray> = {};
    for (const [name, data] of Object.entries(feeds)) {
      brought[name] = await this.memory.upload(data);
    }
    return brought;
  }
}
