import { ArgumentError } from "tinker-ts";
import { totalRewards, type TrajectoryGroup } from "./types.js";

/** Turns the rewards of a batch, group by group, into advantages. */
export type AdvantageEstimator = (rewards: readonly (readonly number[])[]) => number[][];

/** Rewards as they are. */
export const rawRewards: AdvantageEstimator = (rewards) => rewards.map((group) => [...group]);

/** Less the group's mean; no division by its deviation. */
export const meanCentred: AdvantageEstimator = (rewards) =>
  rewards.map((group) => {
    const mean = meanOf(group);
    return group.map((reward) => reward - mean);
  });

/** Less the mean of the other members; a group of one has no baseline. */
export const leaveOneOut: AdvantageEstimator = (rewards) =>
  rewards.map((group) => {
    const total = group.reduce((sum, reward) => sum + reward, 0);
    return group.map((reward) =>
      group.length < 2 ? 0 : reward - (total - reward) / (group.length - 1),
    );
  });

/** Less the group's mean, divided by its deviation: GRPO. */
export const normalized: AdvantageEstimator = (rewards) =>
  meanCentred(rewards).map((group) => {
    const deviation = rootMeanSquare(group);
    return group.map((value) => value / (deviation + smallestDeviation));
  });

/** Less the group's mean, divided by the deviation over the whole batch: REINFORCE++ with baseline. */
export const reinforcePlusPlus: AdvantageEstimator = (rewards) => {
  const centred = meanCentred(rewards);
  const deviation = rootMeanSquare(centred.flat());
  return centred.map((group) => group.map((value) => value / (deviation + smallestDeviation)));
};

/**
 * Less the group's mean, divided by one constant instead of each answer's length: Dr. GRPO. Losses here are
 * sums over tokens, so no length has to be undone.
 */
export function drGrpo(options: {
  /** The constant, usually the most tokens an answer may have. */
  readonly maxTokens: number;
}): AdvantageEstimator {
  if (!(options.maxTokens > 0)) {
    throw new ArgumentError("maxTokens", `must be above 0, got ${options.maxTokens}`);
  }
  return (rewards) =>
    meanCentred(rewards).map((group) => group.map((value) => value / options.maxTokens));
}

/** Advantages of every episode of a batch, group by group. */
export function computeAdvantages(
  groups: readonly TrajectoryGroup[],
  estimator: AdvantageEstimator = meanCentred,
): number[][] {
  return estimator(groups.map(totalRewards));
}

/** True for a group with equal rewards, which teaches nothing. */
export function isConstant(group: TrajectoryGroup): boolean {
  const [first, ...others] = totalRewards(group);
  return others.every((reward) => reward === first);
}

/** The groups with different rewards; the first group when there is none. */
export function withoutConstantGroups(groups: readonly TrajectoryGroup[]): TrajectoryGroup[] {
  const kept = groups.filter((group) => !isConstant(group));
  return kept.length > 0 ? kept : groups.slice(0, 1);
}

const smallestDeviation = 1e-6;

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
}

function rootMeanSquare(values: readonly number[]): number {
  return Math.sqrt(meanOf(values.map((value) => value * value)));
}
