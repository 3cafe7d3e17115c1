import { BufferPool } from "../execution/buffer-pool.js";
import { processor, type Device } from "../execution/device.js";
import { ProgramCache, type ProgramOptions } from "../execution/program.js";
import type { ModelConfig } from "./model-config.js";
import type { ModelWeights, WeightFeeds } from "./model-weights.js";
import { transposedValues } from "./int8-matrix.js";
import { Resident } from "./resident.js";
import { RotaryAngles } from "./rotary-tables.js";
import { forwardName } from "./weights.js";
import { freeMemory } from "../util/free-memory.js";

/** A loaded model with what its trainers and samplers share. */
export class ModelRuntime {
  readonly config: ModelConfig;
  readonly embedding: ModelWeights["embedding"];
  /** The final norm and the unembedding. */
  readonly outer: WeightFeeds;
  readonly layers: HeldLayers;
  readonly programOptions: ProgramOptions;
  /** Data that stays on the device; absent on the processor. */
  readonly resident: Resident | undefined;
  /** Of the device that computes. */
  readonly programs: ProgramCache;
  /** Of the processor, for data that stays there; the same object if it computes everything. */
  readonly processorPrograms: ProgramCache;
  readonly pool = new BufferPool();
  #angles: RotaryAngles | undefined;
  #trainingOuter: WeightFeeds | undefined;

  /** Layers are released only if they can be read again. */
  constructor(
    config: ModelConfig,
    { embedding, outer, layers }: ModelWeights,
    programOptions: ProgramOptions,
    readLayer?: ReadLayer,
  ) {
    this.config = config;
    this.embedding = embedding;
    this.outer = outer;
    this.layers = new HeldLayers(layers, readLayer);
    this.programOptions = programOptions;
    this.resident =
      this.device === processor ? undefined : new Resident(this.layers, outer, programOptions);
    this.programs = new ProgramCache(this.resident?.options ?? programOptions);
    this.processorPrograms =
      this.device === processor
        ? this.programs
        : new ProgramCache({ ...programOptions, device: processor });
  }

  /** The device that computes. */
  get device(): Device {
    return this.programOptions.device ?? processor;
  }

  /**
   * The weights as feeds of training. In 8 bits the transposed unembedding is added
   * when it is first needed; layers transpose theirs as they run, at a few hundredths of a pass.
   */
  async trainingWeights(): Promise<ModelWeights> {
    const layers = await this.layers.all();
    this.#trainingOuter ??= withForwardHead(this.config, this.outer);
    return { layers, embedding: this.embedding, outer: this.#trainingOuter };
  }

  /** Rotary angles of at least the first `positions` positions; the table grows by doubling. */
  rotary(positions: number): RotaryAngles {
    const known = this.#angles;
    if (known !== undefined && known.positions >= positions) return known;
    const size = Math.min(
      Math.max(positions, (known?.positions ?? 256) * 2),
      Math.max(positions, this.config.contextLength),
    );
    this.#angles = new RotaryAngles(this.config, size);
    return this.#angles;
  }

  async release(): Promise<void> {
    await this.programs.release();
    await this.processorPrograms.release();
    await this.resident?.release();
  }
}

function withForwardHead(config: ModelConfig, outer: WeightFeeds): WeightFeeds {
  const { head } = outer;
  if (!(head instanceof Int8Array)) return outer;
  return { ...outer, [forwardName("head")]: transposedValues(head, config.vocabSize) };
}

/** Reads the weights of a layer once more. */
export type ReadLayer = (layer: number) => Promise<WeightFeeds>;

/**
 * The weights of a model's layers. Training reads them all the time, sampling only until it has packed them.
 *
 * - Packed weights are released if they can be read again; their memory is free at once.
 * - Training takes all layers; from then on all are held.
 */
export class HeldLayers {
  /** Bytes of the largest layer. */
  readonly layerBytes: number;
  readonly #bytes: readonly number[];
  readonly #layers: (WeightFeeds | undefined)[];
  readonly #readAgain: ReadLayer | undefined;
  #stay = false;
  #reading: Promise<readonly WeightFeeds[]> | undefined;

  /** Without `readAgain` layers are never released. */
  constructor(layers: readonly WeightFeeds[], readAgain?: ReadLayer) {
    this.#layers = [...layers];
    this.#readAgain = readAgain;
    this.#bytes = layers.map((layer) =>
      Object.values(layer).reduce((sum, { byteLength }) => sum + byteLength, 0),
    );
    this.layerBytes = Math.max(0, ...this.#bytes);
  }

  /** Bytes that are held now and could be released. */
  get spareBytes(): number {
    return this.#stay || this.#readAgain === undefined ? 0 : this.#bytesOf((isHeld) => isHeld);
  }

  /** Bytes that training would have to read again. */
  get missingBytes(): number {
    return this.#bytesOf((isHeld) => !isHeld);
  }

  /** The weights of one layer, read again for this call if it was released. */
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

  /** Releases a layer that only training would still read. */
  release(layer: number): void {
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
