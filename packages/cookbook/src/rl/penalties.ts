import { ArgumentError, ModelInput } from "tinker-ts";
import type { PolicyDatum } from "./policy-datum.js";
import type { Numbers } from "./types.js";

/** Log-probabilities of a whole sequence under some model, the first missing. */
export type ScoreSequence = (
  sequence: ModelInput,
  options?: { readonly signal?: AbortSignal | undefined },
) => Promise<readonly (number | null)[]>;

/** How far the policy may go from another model. */
export interface PenaltyOptions {
  /** Strength. */
  readonly coefficient: number;
  /**
   * How much of a token's penalty the tokens before it share, from 0 to 1.
   * @default 0
   */
  readonly discount?: number | undefined;
}

/** Data with other advantages, and what was measured. */
export interface Penalized {
  /** The data. */
  readonly data: PolicyDatum[];
  /** What was measured. */
  readonly metrics: Numbers;
}

/**
 * Takes the distance from a reference out of the advantages, centred over the batch: tokens that went
 * further from it than the others are worth less. `references` has one list per datum, as long as its targets.
 */
export function penalizeDistance(
  data: readonly PolicyDatum[],
  references: readonly ArrayLike<number>[],
  options: PenaltyOptions,
): Penalized {
  const distances = distancesFrom(data, references);
  const mean = maskedMean(data, distances);
  const penalized = data.map((datum, index) =>
    withAdded(datum, options, (at) => mean - distances[index]![at]!),
  );
  return { data: penalized, metrics: { kl_policy_base: mean } };
}

/**
 * Makes the distance from a teacher the whole of what is learned: every token's advantage is less by how much
 * more probable it was to the student. `datasets` names the data set of each datum.
 */
export function penalizeTeacherDistance(
  data: readonly PolicyDatum[],
  teachers: readonly ArrayLike<number>[],
  options: PenaltyOptions & {
    /** The data set of each datum, for metrics. */
    readonly datasets?: readonly number[] | undefined;
  },
): Penalized {
  const distances = distancesFrom(data, teachers);
  const penalized = data.map((datum, index) =>
    withAdded(datum, options, (at) => -distances[index]![at]!),
  );
  const metrics: Record<string, number> = { teacher_kl: maskedMean(data, distances) };
  for (const dataset of new Set(options.datasets)) {
    const ofDataset = (_: unknown, index: number): boolean => options.datasets![index] === dataset;
    if (!data.filter(ofDataset).some(({ mask }) => mask.includes(1))) continue;
    metrics[`teacher_kl/dataset_${dataset}`] = maskedMean(
      data.filter(ofDataset),
      distances.filter(ofDataset),
    );
  }
  return { data: penalized, metrics };
}

/** Scores the whole sequence of every datum; the lists are as long as the targets. */
export async function scoreData(
  data: readonly PolicyDatum[],
  score: ScoreSequence,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<Float32Array[]> {
  return Promise.all(
    data.map(async (datum) => {
      const logprobs = await score(fullSequence(datum), options);
      if (logprobs.length !== datum.targets.length + 1) {
        throw new ArgumentError(
          "score",
          `must return one value per token (${datum.targets.length + 1}), got ${logprobs.length}`,
        );
      }
      return Float32Array.from(logprobs.slice(1), (value) => value ?? 0);
    }),
  );
}

/** What was read and sampled, as one sequence. */
export function fullSequence({
  input,
  targets,
}: Pick<PolicyDatum, "input" | "targets">): ModelInput {
  return input.appendInt(targets.at(-1)!);
}

/** x[t] + discount * x[t + 1] + discount² * x[t + 2] + … */
export function discountedFutureSum(values: ArrayLike<number>, discount: number): Float64Array {
  const sums = new Float64Array(values.length);
  let later = 0;
  for (let at = values.length - 1; at >= 0; at--) {
    later = values[at]! + discount * later;
    sums[at] = later;
  }
  return sums;
}

/** Mean over trained tokens of all data; 0 when there are none. */
export function maskedMean(
  data: readonly Pick<PolicyDatum, "mask">[],
  values: readonly ArrayLike<number>[],
): number {
  let sum = 0;
  let count = 0;
  for (const [index, { mask }] of data.entries()) {
    for (const [at, bit] of mask.entries()) {
      sum += bit * values[index]![at]!;
      count += bit;
    }
  }
  return count === 0 ? 0 : sum / count;
}

function distancesFrom(
  data: readonly PolicyDatum[],
  references: readonly ArrayLike<number>[],
): Float64Array[] {
  return data.map(({ logprobs, mask }, index) => {
    const reference = references[index];
    if (reference?.length !== mask.length) {
      throw new ArgumentError(
        `references[${index}]`,
        `must have ${mask.length} entries, got ${reference?.length ?? "none"}`,
      );
    }
    return Float64Array.from(mask, (bit, at) => bit * (logprobs[at]! - reference[at]!));
  });
}

function withAdded(
  datum: PolicyDatum,
  { coefficient, discount = 0 }: PenaltyOptions,
  at: (position: number) => number,
): PolicyDatum {
  const added = Float64Array.from(datum.mask, (bit, position) => coefficient * bit * at(position));
  const shared = discount > 0 ? discountedFutureSum(added, discount) : added;
  // A share that falls on a token that was not sampled would train it.
  return {
    ...datum,
    advantages: datum.advantages.map(
      (value, position) => value + shared[position]! * datum.mask[position]!,
    ),
  };
}
