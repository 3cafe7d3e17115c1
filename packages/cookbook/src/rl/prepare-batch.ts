import type { SamplingClient, TrainingClient } from "tinker-ts";
import { computeAdvantages, isConstant, type AdvantageEstimator } from "./advantages.js";
import { penalizeDistance, scoreData, type Penalized, type PenaltyOptions } from "./penalties.js";
import { batchToData, type PolicyDatum } from "./policy-datum.js";
import type { Numbers, TrajectoryGroup } from "./types.js";

/** The context of an adjuster. */
export interface AdjustContext {
  /** The step that the data are for. */
  readonly step: number;
  /** The model; what is asked of it here comes before the step's own update. */
  readonly training: TrainingClient;
  /** Aborts the work. */
  readonly signal?: AbortSignal | undefined;
}

/** Changes the data of a batch before they are trained, for instance by a penalty. */
export type DataAdjuster = (
  data: readonly PolicyDatum[],
  groups: readonly TrajectoryGroup[],
  context: AdjustContext,
) => Promise<Penalized>;

/** Options of `prepareBatch`. */
export interface PrepareOptions {
  /** How rewards become advantages. */
  readonly advantages: AdvantageEstimator;
  /** Whether groups of equal rewards are left out. */
  readonly removeConstantRewardGroups: boolean;
  /** Applied one after the other. */
  readonly adjusters: readonly DataAdjuster[];
}

/** Data that are ready for training. */
export interface PreparedBatch {
  /** The data; `group` counts the groups that were kept. */
  readonly data: readonly PolicyDatum[];
  /** The groups that were kept. */
  readonly groups: readonly TrajectoryGroup[];
  /** Metrics of the preparation. */
  readonly metrics: Numbers;
}

/** Turns episodes into data with advantages. */
export async function prepareBatch(
  played: readonly TrajectoryGroup[],
  { advantages, removeConstantRewardGroups, adjusters }: PrepareOptions,
  context: AdjustContext,
): Promise<PreparedBatch> {
  const groups = removeConstantRewardGroups ? played.filter((group) => !isConstant(group)) : played;
  // What was masked from end to end has nothing to teach.
  let data: readonly PolicyDatum[] = batchToData(
    groups,
    computeAdvantages(groups, advantages),
  ).filter(({ mask }) => mask.includes(1));
  const metrics: Record<string, number> = removeConstantRewardGroups
    ? { "rollouts/constant_groups": played.length - groups.length }
    : {};
  for (const adjust of adjusters) {
    const adjusted = await adjust(data, groups, context);
    data = adjusted.data;
    Object.assign(metrics, adjusted.metrics);
  }
  return { data, groups, metrics };
}

/** Keeps the policy near a model that a client samples from. */
export function klPenalty(reference: SamplingClient, options: PenaltyOptions): DataAdjuster {
  return async (data, _groups, { signal }) => {
    const references = await scoreData(
      data,
      (sequence) => reference.computeLogprobs(sequence, signal ? { signal } : {}),
      {
        signal,
      },
    );
    return penalizeDistance(data, references, options);
  };
}
