import { freeMemory } from "../util/free-memory.js";
import type { WeightFeeds } from "./model-weights.js";

/** Reads the weights of a layer once more. */
export type ReadLayer = (layer: number) => Promise<WeightFeeds>;

/**
 * The weights of a model's layers. Training reads them all the time, sampling only until it has packed them.
 *
 * - What has been packed is let go of, where it can be read again; its memory is free at once.
 * - Whoever trains gets all layers, and from then on all are held.
 */
export class HeldLayers {
  /** Bytes of the largest layer. */
  readonly layerBytes: number;
  readonly #bytes: readonly number[];
  readonly #layers: (WeightFeeds | undefined)[];
  readonly #readAgain: ReadLayer | undefined;
  #stay = false;
  #reading: Promise<readonly WeightFeeds[]> | undefined;

  /** Without `readAgain` layers are never let go of. */
  constructor(layers: readonly WeightFeeds[], readAgain?: ReadLayer) {
    this.#layers = [...layers];
    this.#readAgain = readAgain;
    this.#bytes = layers.map((layer) =>
      Object.values(layer).reduce((sum, { byteLength }) => sum + byteLength, 0),
    );
    this.layerBytes = Math.max(0, ...this.#bytes);
  }

  /** Bytes that are held now and could be let go of. */
  get spareBytes(): number {
    return this.#stay || this.#readAgain === undefined ? 0 : this.#bytesOf((isHeld) => isHeld);
  }

  /** Bytes that training would have to read again. */
  get missingBytes(): number {
    return this.#bytesOf((isHeld) => !isHeld);
  }

  /** The weights of one layer, which may be read for this once. */
  async of(layer: number): Promise<WeightFeeds> {
    return this.#layers[layer] ?? this.#read(layer);
  }

  /** All layers, which are held from now on. */
  all(): Promise<readonly WeightFeeds[]> {
    this.#stay = true;
    this.#reading ??= this.#readAll();
    this.#reading.catch(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** Lets go of a layer that nothing but training reads any more. */
  letGo(layer: number): void {
    const held = this.#layers[layer];
    if (held === undefined || this.#stay || this.#readAgain === undefined) return;
    this.#layers[layer] = undefined;
    freeMemory(Object.values(held).map(({ buffer }) => buffer));
  }

  #bytesOf(isCounted: (isHeld: boolean) => boolean): number {
    return this.#bytes.reduce(
      (sum, bytes, layer) => (isCounted(this.#layers[layer] !== undefined) ? sum + bytes : sum),
      0,
    );
  }

  async #readAll(): Promise<readonly WeightFeeds[]> {
    const all: WeightFeeds[] = [];
    for (const [index, held] of this.#layers.entries()) {
      const layer = held ?? (await this.#read(index));
      this.#layers[index] = layer;
      all.push(layer);
    }
    return all;
  }

  #read(layer: number): Promise<WeightFeeds> {
    if (this.#readAgain === undefined) throw new Error(`the model has no layer ${layer}`);
    return this.#readAgain(layer);
  }
}
