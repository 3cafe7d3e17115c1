import type { ModelConfig } from "../files/model-config.js";
import { BufferPool } from "../execution/buffer-pool.js";
import { processor, type Device } from "../execution/device.js";
import { ProgramCache } from "../execution/program-cache.js";
import type { ProgramOptions } from "../execution/program.js";
import type { ModelWeights } from "./model-weights.js";
import { transposedValues } from "./int8-matrix.js";
import { Resident } from "./resident.js";
import { RotaryAngles } from "./rotary-tables.js";
import { forwardName } from "./weights.js";

/** A loaded model with what its trainers and samplers share. */
export class ModelRuntime {
  readonly config: ModelConfig;
  readonly weights: ModelWeights;
  readonly programOptions: ProgramOptions;
  /** What stays on the device; absent where the processor computes. */
  readonly resident: Resident | undefined;
  /** Of the device that computes. */
  readonly programs: ProgramCache;
  /** Of the processor, for what stays there; the same where it computes everything. */
  readonly processorPrograms: ProgramCache;
  readonly pool = new BufferPool();
  #angles: RotaryAngles | undefined;
  #trainingWeights: ModelWeights | undefined;

  constructor(config: ModelConfig, weights: ModelWeights, programOptions: ProgramOptions) {
    this.config = config;
    this.weights = weights;
    this.programOptions = programOptions;
    this.resident = this.device === processor ? undefined : new Resident(weights, programOptions);
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
  get trainingWeights(): ModelWeights {
    this.#trainingWeights ??= withForwardHead(this.config, this.weights);
    return this.#trainingWeights;
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

function withForwardHead(config: ModelConfig, weights: ModelWeights): ModelWeights {
  const { head } = weights.outer;
  if (!(head instanceof Int8Array)) return weights;
  const turned = transposedValues(head, config.vocabSize);
  return { ...weights, outer: { ...weights.outer, [forwardName("head")]: turned } };
}
