import type { ModelConfig } from "../files/model-config.js";
import { BufferPool } from "../execution/buffer-pool.js";
import { processor, type Device } from "../execution/device.js";
import { ProgramCache } from "../execution/program-cache.js";
import type { ProgramOptions } from "../execution/program.js";
import type { ModelWeights } from "./model-weights.js";
import { RotaryAngles } from "./rotary-tables.js";

/** A loaded model with what its trainers and samplers share. */
export class ModelRuntime {
  readonly config: ModelConfig;
  readonly weights: ModelWeights;
  readonly programOptions: ProgramOptions;
  /** Of the device that computes. */
  readonly programs: ProgramCache;
  /** Of the processor, for what stays there; the same where it computes everything. */
  readonly processorPrograms: ProgramCache;
  readonly pool = new BufferPool();
  #angles: RotaryAngles | undefined;

  constructor(config: ModelConfig, weights: ModelWeights, programOptions: ProgramOptions) {
    this.config = config;
    this.weights = weights;
    this.programOptions = programOptions;
    this.programs = new ProgramCache(programOptions);
    this.processorPrograms =
      this.device === processor
        ? this.programs
        : new ProgramCache({ ...programOptions, device: processor });
  }

  /** What computes. */
  get device(): Device {
    return this.programOptions.device ?? processor;
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
  }
}
