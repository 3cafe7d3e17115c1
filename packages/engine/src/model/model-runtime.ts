import { BufferPool } from "../execution/buffer-pool.js";
import { processor, type Device } from "../execution/device.js";
import { ProgramCache } from "../execution/program-cache.js";
import type { ProgramOptions } from "../execution/program.js";
import type { ModelConfig } from "./model-config.js";
import { HeldLayers, type ReadLayer } from "./held-layers.js";
import type { ModelWeights, WeightFeeds } from "./model-weights.js";
import { transposedValues } from "./int8-matrix.js";
import { Resident } from "./resident.js";
import { RotaryAngles } from "./rotary-tables.js";
import { forwardName } from "./weights.js";

/** A loaded model with what its trainers and samplers share. */
export class ModelRuntime {
  readonly config: ModelConfig;
  readonly embedding: ModelWeights["embedding"];
  /** The final norm and the unembedding. */
  readonly outer: WeightFeeds;
  readonly layers: HeldLayers;
  readonly programOptions: ProgramOptions;
  /** What stays on the device; absent where the processor computes. */
  readonly resident: Resident | undefined;
  /** Of the device that computes. */
  readonly programs: ProgramCache;
  /** Of the processor, for what stays there; the same where it computes everything. */
  readonly processorPrograms: ProgramCache;
  readonly pool = new BufferPool();
  #angles: RotaryAngles | undefined;
  #trainingOuter: WeightFeeds | undefined;

  /** Layers are let go of only if they can be read again. */
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

  /** What computes. */
  get device(): Device {
    return this.programOptions.device ?? processor;
  }

  /**
   * The weights as training is fed them. Those in 8 bits get their unembedding the other way round too,
   * when it is first needed; layers turn theirs as they run, which costs a few hundredths of a pass.
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
