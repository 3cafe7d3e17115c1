import { kindKey, layerKind } from "@tinker-ts/hub/weights";
import { DeviceArray } from "../execution/device-array.js";
import { DeviceScope } from "./device-scope.js";
import type { PortData, PortSources, PortValues, Program } from "../execution/program.js";
import type { DimBindings } from "../graph/dim.js";
import type { ModelRuntime } from "../model/model-runtime.js";
import type { Resident } from "../model/resident.js";
import type { RotaryAngles } from "../model/rotary-tables.js";
import { at } from "../util/arrays.js";
import type { AdapterSet } from "../sample/adapter-set.js";
import { decoderPart, ofLayer } from "../sample/graphs/decoder.js";
import { DeviceKvMemory, madeOf, type KvArray } from "../sample/kv-memory.js";
import type { KvRows } from "../sample/kv-rows.js";

/** Inputs of a run of all layers besides weights. */
export interface LayersInput {
  readonly embedded: Float32Array;
  readonly cache: KvRows;
  readonly adapters: AdapterSet;
  readonly rotary: RotaryAngles;
  /** Read by every layer, and small. */
  readonly own: PortValues;
  readonly sizes: DimBindings;
}

/**
 * The decoder's layers on a device: one program for all layers of a kind, which reads the weights where they
 * lie. Keys and values, factors of adapters and everything between layers stay on the device.
 */
export class DeviceLayers {
  readonly memory: DeviceKvMemory;
  readonly #model: ModelRuntime;
  readonly #resident: Resident;
  readonly #adapters = new Map<AdapterSet, Promise<PortValues>>();

  constructor(model: ModelRuntime, resident: Resident) {
    this.#model = model;
    this.#resident = resident;
    this.memory = new DeviceKvMemory(resident.memory);
  }

  /** Reads new tokens, extends the cache, and hands the last hidden states to `use`. */
  async run(input: LayersInput, use: (hidden: DeviceArray) => Promise<void>): Promise<void> {
    await this.memory.settle();
    const { cache, adapters, rotary, sizes } = input;
    const { config, pool } = this.#model;
    const scope = new DeviceScope(this.#resident.memory, pool);
    try {
      const { layers } = await this.#resident.weights();
      const factors = await this.factors(adapters);
      const tables = await this.#resident.rotary(rotary);
      // The lengths of sequences are read by the processor.
      const extents = Object.entries(input.own).filter(([, data]) => data instanceof Int32Array);
      const others = Object.entries(input.own).filter(([, data]) => !(data instanceof Int32Array));
      const placed = await scope.place(Object.fromEntries(others));
      const own = { ...Object.fromEntries(extents), ...placed };
      let { hidden } = await scope.place({ hidden: input.embedded });
      for (let layer = 0; layer < config.layers; layer++) {
        const like = this.#firstLike(layer);
        const program = await this.#program(like);
        const next = await scope.take(input.embedded.length);
        const caches = cachePorts(cache, layer, like);
        const feeds: PortSources = [
          renamed(at(layers, layer), like),
          renamed(factors, like, layer),
          caches,
          tables,
          defined({ ...own, hidden }),
        ];
        await program.run(feeds, [caches, { next }], sizes);
        if (hidden instanceof DeviceArray) scope.giveBack(hidden);
        hidden = next;
      }
      if (!(hidden instanceof DeviceArray)) throw new Error("a model without layers");
      await use(hidden);
    } finally {
      scope.end();
    }
  }

  /** The factors of joined adapters on the device. */
  factors(adapters: AdapterSet): Promise<PortValues> {
    const known = this.#adapters.get(adapters);
    if (known !== undefined) return known;
    const brought = this.#bring(adapters);
    this.#adapters.set(adapters, brought);
    brought.catch(() => this.#adapters.delete(adapters));
    return brought;
  }

  /** Frees adapters that are no longer used, except those of the current run. */
  forget(adapters: AdapterSet): void {
    const known = this.#adapters.get(adapters);
    this.#adapters.delete(adapters);
    this.memory.later(async () => {
      const feeds = await known?.catch(() => undefined);
      this.#resident.memory.giveBack(...Object.values(feeds ?? {}).filter(isOnDevice));
    });
  }

  async #bring(adapters: AdapterSet): Promise<PortValues> {
    const brought: Record<string, PortData> = {};
    for (const [name, data] of Object.entries(adapters.feeds)) {
      brought[name] = await this.#resident.memory.upload(data);
    }
    return brought;
  }

  /** The first layer of the same kind; the program uses its names. */
  #firstLike(layer: number): number {
    const { config } = this.#model;
    const key = kindKey(layerKind(config, layer));
    let first = 0;
    while (kindKey(layerKind(config, first)) !== key) first += 1;
    return first;
  }

  #program(first: number): Promise<Program> {
    const { config, programs } = this.#model;
    const part = { first, end: first + 1, head: false };
    return programs.get(`decoder from ${first}`, () => decoderPart(config, part));
  }
}

function isOnDevice(data: PortData): data is DeviceArray {
  return data instanceof DeviceArray;
}

/** Feeds of a layer under the names of another; those of `layer` alone, where feeds are named by layer. */
function renamed(feeds: PortValues, like: number, layer?: number): PortValues {
  const prefix = layer === undefined ? "" : ofLayer(layer, "");
  const own: Record<string, PortData> = {};
  for (const [name, data] of Object.entries(feeds)) {
    if (name.startsWith(prefix)) own[ofLayer(like, name.slice(prefix.length))] = data;
  }
  return own;
}

/** A layer's cache as inputs and outputs of its program: the same memory. */
function cachePorts(cache: KvRows, layer: number, like: number): PortValues {
  const rows = cache.rowCapacity;
  const [keys, values] = [onDevice(cache.keys(layer, rows)), onDevice(cache.values(layer, rows))];
  return {
    [ofLayer(like, "keys")]: keys,
    [ofLayer(like, "values")]: values,
    [ofLayer(like, "extendedKeys")]: keys,
    [ofLayer(like, "extendedValues")]: values,
  };
}

function onDevice(array: KvArray): DeviceArray {
  if (array instanceof Float32Array) throw new Error("the cache does not lie on the device");
  return madeOf(array);
}

function defined(feeds: Readonly<Record<string, PortData | undefined>>): PortValues {
  const present: Record<string, PortData> = {};
  for (const [name, data] of Object.entries(feeds)) if (data !== undefined) present[name] = data;
  return present;
}
