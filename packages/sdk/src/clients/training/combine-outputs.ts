import { TinkerError } from "../../errors/tinker-error.js";
import { setOwn } from "../../schema/set-own.js";
import type { ForwardBackwardOutput } from "../../types/training.js";

/** The output of a call from the outputs of its chunks, in chunk order. */
export function combineOutputs(chunks: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const [first] = chunks;
  return {
    ...first,
    lossFnOutputType: first?.lossFnOutputType ?? "",
    lossFnOutputs:
      chunks.length === 1
        ? first!.lossFnOutputs
        : chunks.flatMap(({ lossFnOutputs }) => lossFnOutputs),
    metrics: reduceMetrics(
      chunks.map(({ metrics, lossFnOutputs }) => ({ metrics, weight: lossFnOutputs.length })),
    ),
  };
}

/** The metrics of one chunk and the number of its outputs. */
interface ChunkMetrics {
  readonly metrics: Readonly<Record<string, number>>;
  readonly weight: number;
}

type Reduction = (values: readonly number[], weights: readonly number[]) => number;

const reductions: Readonly<Record<string, Reduction>> = {
  mean: weightedMean,
  // Twinkle's name of it.
  avg: weightedMean,
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  slack: (values, weights) => Math.max(...values) - weightedMean(values, weights),
  hash_unordered: (values) => {
    const integers = values.map((value) => BigInt(Math.trunc(value)));
    // Beyond 2^53 the hash becomes the nearest double; equal hashes stay equal.
    return Number(tupleHash(integers.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))));
  },
};

/**
 * One set of metrics for a call that was sent in chunks. The name has the reduction: `loss:sum`, `x:mean`.
 *
 * - Names come from the first chunk; one that another chunk lacks, or that has an unknown reduction,
 *   is left out.
 * - `unique` keeps every chunk's value: `clock:unique`, `clock:unique_1`, ...
 * - One chunk is reduced like many, so `slack` of a single chunk is 0.
 */
export function reduceMetrics(chunks: readonly ChunkMetrics[]): Record<string, number> {
  const [first] = chunks;
  const reduced: Record<string, number> = {};
  for (const key of Object.keys(first?.metrics ?? {})) {
    const reduction = reductionOf(key);
    const values: number[] = [];
    const weights: number[] = [];
    for (const { metrics, weight } of chunks) {
      if (!Object.hasOwn(metrics, key)) continue;
      values.push(metrics[key]!);
      weights.push(weight);
    }
    if (values.length < chunks.length) continue;
    if (reduction === "unique") {
      for (const [index, value] of values.entries()) {
        setOwn(reduced, index === 0 ? key : `${key}_${index}`, value);
      }
    } else if (Object.hasOwn(reductions, reduction)) {
      setOwn(reduced, key, reductions[reduction]!(values, weights));
    }
  }
  return reduced;
}

function reductionOf(key: string): string {
  const parts = key.split(":");
  if (parts.length === 2) return parts[1]!;
  throw new TinkerError(
    `The server sent the metric ${JSON.stringify(key)}; expected name:reduction with one colon.`,
    { code: "bad_metric" },
  );
}

function weightedMean(values: readonly number[], weights: readonly number[]): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) {
    throw new TinkerError("The server sent a mean over no outputs.", { code: "bad_metric" });
  }
  return values.reduce((sum, value, index) => sum + value * weights[index]!, 0) / total;
}

const prime1 = 11400714785074694791n;
const prime2 = 14029467366897019727n;
const prime5 = 2870177450012600261n;
const modulus = 2n ** 61n - 1n;

/** Python's hash of a tuple of integers, as a signed 64-bit number. */
export function tupleHash(values: readonly bigint[]): bigint {
  let accumulator = prime5;
  for (const value of values) {
    accumulator = unsigned(accumulator + laneOf(value) * prime2);
    accumulator = unsigned((accumulator << 31n) | (accumulator >> 33n));
    accumulator = unsigned(accumulator * prime1);
  }
  accumulator = unsigned(accumulator + (BigInt(values.length) ^ (prime5 ^ 3527539n)));
  if (accumulator === unsigned(-1n)) accumulator = 1546275796n;
  return BigInt.asIntN(64, accumulator);
}

/** Python's hash of one integer, as the 64 bits that go into the tuple's. */
function laneOf(value: bigint): bigint {
  const magnitude = (value < 0n ? -value : value) % modulus;
  const hash = value < 0n ? -magnitude : magnitude;
  return unsigned(hash === -1n ? -2n : hash);
}

function unsigned(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}
