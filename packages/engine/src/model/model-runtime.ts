import type { ModelConfig } from "../files/model-config.js";
import { MergedWeights } from "../train/merged-weights.js";
import { BufferPool } from "../runtime/buffer-pool.js";
import { ProgramCache } from "../runtime/program-cache.js";
import type { ProgramOptions } from "../runtime/program.js";
import type { ModelWeights } from "./model-weights.js";
import { rotaryAngles, type RotaryAngles } from "./rotary-tables.js";

/** A loaded model with what its trainers and samplers share. */
export class ModelRuntime {
  readonly config: ModelConfig;
  readonly weights: ModelWeights;
  readonly programOptions: ProgramOptions;
  readonly programs: ProgramCache;
  readonly pool = new BufferPool();
  readonly merged: MergedWeights;
  #angles: RotaryAngles | undefined;

  constructor(config: ModelConfig, weights: ModelWeights, programOptions: ProgramOptions) {
    this.config = config;
    this.weights = weights;
    this.programOptions = programOptions;
    this.programs = new ProgramCache(programOptions);
    this.merged = new MergedWeights(config, weights, this.programs);
  }

  /** Rotary angles of at least the first `positions` positions; the table grows by doubling. */
  rotary(positions: number): RotaryAngles {
    const known = this.#angles;
    if (known !== undefined && known.positions >= positions) return known;
    const size = Math.min(
      Math.max(positions, (known?.positions ?? 256) * 2),
      Math.max(positions, this.config.contextLength),
    );
    this.#angles = rotaryAngles(this.config, size);
    return this.#angles;
  }

  async release(): Promise<void> {
    await this.programs.release();
  }
}
