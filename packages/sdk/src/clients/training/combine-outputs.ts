import { TinkerError } from "../../errors/tinker-error.js";
import { setOwn } from "../../schema/set-own.js";
import type { ForwardBackwardOutput, LossFnType } from "../../types/training.js";
import type { Datum } from "../../types/datum.js";
import type { TensorData } from "../../types/tensor-data.js";

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

/** The contribution of one target to a loss: from its logprob now and its inputs. */
type PerTarget = (logprob: number, inputs: TargetInputs) => number;

interface TargetInputs {
  readonly weight: number;
  /** The logprob it was sampled with. */
  readonly sampled: number;
  readonly advantage: number;
}

type Settings = Readonly<Record<string, number>>;

const losses: Readonly<Record<LossFnType, (settings: Settings) => PerTarget>> = {
  cross_entropy:
    () =>
    (logprob, { weight }) =>
      -logprob * weight,
  importance_sampling:
    () =>
    (logprob, { sampled, advantage }) =>
      -Math.exp(logprob - sampled) * advantage,
  ppo:
    ({ clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 }) =>
    (logprob, target) => {
      const ratio = Math.exp(logprob - target.sampled);
      const clipped = Math.min(Math.max(ratio, low), high);
      return -Math.min(ratio * target.advantage, clipped * target.advantage);
    },
  cispo:
    ({ clip_low_threshold: low = 0, clip_high_threshold: high = 4 }) =>
    (logprob, target) => {
      const ratio = Math.exp(logprob - target.sampled);
      return -Math.min(Math.max(ratio, low), high) * logprob * target.advantage;
    },
  dro:
    ({ beta = 0.05 }) =>
    (logprob, { sampled, advantage }) =>
      (beta / 2) * (logprob - sampled) ** 2 - logprob * advantage,
};

/**
 * The output with `loss:sum`, computed from the logprobs where the server left it out: some servers do, and
 * a program would print NaN and compare it with nothing. Without logprobs there is nothing to compute from.
 */
export function withLossValue(
  output: ForwardBackwardOutput,
  data: readonly Datum[],
  lossFn: LossFnType,
  settings: Settings | null,
): ForwardBackwardOutput {
  const { metrics, lossFnOutputs } = output;
  if (Object.hasOwn(metrics, "loss:sum") || lossFnOutputs.length !== data.length) return output;
  const perTarget = losses[lossFn](settings ?? {});
  let sum = 0;
  for (const [index, { lossFnInputs }] of data.entries()) {
    const logprobs = valuesOf(lossFnOutputs[index]?.["logprobs"]);
    if (!logprobs) return output;
    const weights = valuesOf(lossFnInputs["weights"]);
    const sampled = valuesOf(lossFnInputs["logprobs"]);
    const advantages = valuesOf(lossFnInputs["advantages"]);
    const targets = valuesOf(lossFnInputs["target_tokens"])?.length ?? logprobs.length;
    // Some servers leave the logprobs of a prompt out; what there is belongs to the end.
    const first = Math.max(0, targets - logprobs.length);
    for (let place = 0; place < logprobs.length; place++) {
      const target = first + place;
      const weight = Number(weights?.[target] ?? 1);
      const advantage = Number(advantages?.[target] ?? 0);
      if (isSilent(lossFn, weight, advantage)) continue; // a server may send anything there, also NaN
      const inputs = { weight, advantage, sampled: Number(sampled?.[target] ?? 0) };
      sum += perTarget(Number(logprobs[place]), inputs);
    }
  }
  return { ...output, metrics: { ...metrics, "loss:sum": sum } };
}

function isSilent(lossFn: LossFnType, weight: number, advantage: number): boolean {
  if (lossFn === "cross_entropy") return weight === 0;
  return lossFn !== "dro" && advantage === 0;
}

function valuesOf(tensor: TensorData | undefined): ArrayLike<number | bigint> | undefined {
  return tensor?.toDense().data;
}
