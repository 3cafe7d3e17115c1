import { EngineError } from "../errors.js";

/** How a model's share of memory is divided. */
export interface MemoryPlan {
  /** Activations that wait for the backward pass. */
  readonly activationBytes: number;
  /** Keys and values of running sequences. */
  readonly kvBytes: number;
  /** Keys and values of remembered prompts. */
  readonly prefixBytes: number;
}

const smallestShareBytes = 256 << 20;

/**
 * Divides what is left beside the weights. Sampling holds a second copy of them, packed for its kernels.
 * The division is fixed when a model is loaded: what runs at the moment must not change how training is
 * split, or results would not repeat bit for bit.
 */
export function planMemory(memoryBytes: number, weightBytes: number): MemoryPlan {
  if (weightBytes + smallestShareBytes > memoryBytes) {
    throw new EngineError(
      "not_enough_memory",
      `the model's weights take ${megabytes(weightBytes)} MB, but the engine may use ` +
        `${megabytes(memoryBytes)} MB; raise memoryBytes or choose a smaller model.`,
    );
  }
  const rest = Math.max(smallestShareBytes, memoryBytes - 2 * weightBytes);
  return { activationBytes: rest * 0.5, kvBytes: rest * 0.25, prefixBytes: rest * 0.1 };
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
