import { EngineError } from "../errors.js";

/** How a model's share of memory is divided. */
export interface MemoryPlan {
  /** Activations that wait for the backward pass. */
  readonly activationBytes: number;
  /** Keys and values of running sequences. */
  readonly kvBytes: number;
  /** Keys and values of remembered prompts. */
  readonly prefixBytes: number;
  /** What the model says of tokens: numbers for its whole vocabulary, for each that is asked for. */
  readonly tableBytes: number;
}

const smallestShareBytes = 256 << 20;

/**
 * Divides what is left beside the weights. Sampling holds a second copy of them, packed for its kernels.
 * The division depends on the model alone: neither what runs at the moment nor which other models are
 * loaded may change how training is split, or results would not repeat bit for bit. Others count only
 * when it is decided whether there is room at all. `smaller` is what the model would take with smaller weights.
 */
export function planMemory(
  memoryBytes: number,
  weightBytes: number,
  otherWeightBytes: number,
  smaller?: SmallerWeights,
): MemoryPlan {
  if (weightBytes + otherWeightBytes + smallestShareBytes > memoryBytes) {
    const [others, way] =
      otherWeightBytes === 0
        ? ["", smallerWay(memoryBytes, smaller) ?? "choose a smaller model"]
        : [` and those of other models ${megabytes(otherWeightBytes)} MB`, "unload another model"];
    throw new EngineError(
      "not_enough_memory",
      `the model's weights take ${megabytes(weightBytes)} MB${others}, but the engine may use ` +
        `${megabytes(memoryBytes)} MB; raise memoryBytes or ${way}.`,
    );
  }
  return divideMemory(memoryBytes, weightBytes);
}

/** Smaller weights of a model, and what they take. */
export interface SmallerWeights {
  readonly weights: string;
  readonly weightBytes: number;
}

/**
 * Refuses what would take more than nothing uses at the moment: the machine would begin to swap, and then
 * everything on it stands still. `what` needs `neededBytes`.
 */
export function refuseSwapping(
  what: string,
  neededBytes: number,
  unusedBytes: number,
  smaller?: SmallerWeights,
): void {
  if (neededBytes <= unusedBytes) return;
  const way = smallerWay(unusedBytes, smaller) ?? "choose a smaller model";
  throw new EngineError(
    "not_enough_memory",
    `${what} ${megabytes(neededBytes)} MB, but the machine has ${megabytes(unusedBytes)} MB left; end ` +
      `other programs, or ${way}.`,
  );
}

/** The division of what an engine may use. */
export function divideMemory(memoryBytes: number, weightBytes: number): MemoryPlan {
  const rest = Math.max(smallestShareBytes, memoryBytes - 2 * weightBytes);
  return {
    activationBytes: rest * 0.5,
    kvBytes: rest * 0.25,
    prefixBytes: rest * 0.1,
    tableBytes: rest * 0.1,
  };
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

/** What would fit, where something does. */
function smallerWay(memoryBytes: number, smaller: SmallerWeights | undefined): string | undefined {
  if (smaller === undefined || smaller.weightBytes + smallestShareBytes > memoryBytes)
    return undefined;
  return `load it with weights: "${smaller.weights}", which take ${megabytes(smaller.weightBytes)} MB`;
}
