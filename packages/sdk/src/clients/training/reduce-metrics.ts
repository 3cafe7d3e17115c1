import { TinkerError } from "../../errors/tinker-error.js";
import { setOwn } from "../../schema/set-own.js";
import { tupleHash } from "./tuple-hash.js";

/** The metrics of one chunk and how many outputs stand behind them. */
export interface ChunkMetrics {
  readonly metrics: Readonly<Record<string, number>>;
  readonly weight: number;
}

type Reduction = (values: readonly number[], weights: readonly number[]) => number;

const reductions: Readonly<Record<string, Reduction>> = {
  mean: weightedMean,
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  slack: (values, weights) => Math.max(...values) - weightedMean(values, weights),
  hash_unordered: (values) => {
    const integers = values.map((value) => BigInt(Math.trunc(value)));
    // Beyond 2^53 the nearest double stands for the hash; equal hashes stay equal.
    return Number(tupleHash(integers.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))));
  },
};

/**
 * One set of metrics for a call that was sent in chunks. The name says how: `loss:sum`, `x:mean`.
 *
 * - Names come from the first chunk; one that another chunk lacks, or whose reduction is not known,
 *   is left out.
 * - `unique` keeps every chunk's value: `clock:unique`, `clock:unique_1`, ...
 * - One chunk is reduced like many, so `slack` of a single chunk is 0.
 */
export function reduceMetrics(chunks: readonly ChunkMetrics[]): Record<string, number> {
  const weights = chunks.map(({ weight }) => weight);
  const reduced: Record<string, number> = {};
  for (const key of Object.keys(chunks[0]?.metrics ?? {})) {
    const reduction = reductionOf(key);
    if (!chunks.every(({ metrics }) => Object.hasOwn(metrics, key))) continue;
    const values = chunks.map(({ metrics }) => metrics[key]!);
    if (reduction === "unique") {
      values.forEach((value, index) =>
        setOwn(reduced, index === 0 ? key : `${key}_${index}`, value),
      );
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
