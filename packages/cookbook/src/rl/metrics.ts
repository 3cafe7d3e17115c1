import { maskedMean } from "./penalties.js";
import type { PolicyDatum } from "./policy-datum.js";
import { totalReward, totalRewards, type Numbers, type TrajectoryGroup } from "./types.js";

/**
 * How far training sees the sampled tokens from where the sampler saw them, and the sampler's entropy; both
 * distances are near 0 when training and sampling agree. Nothing when no token is trained.
 */
export function sampleTrainMetrics(
  data: readonly PolicyDatum[],
  trainingLogprobs: readonly ArrayLike<number>[],
): Numbers {
  if (!hasTrainedTokens(data)) return {};
  const { first, second } = distance(data, trainingLogprobs);
  return {
    "optim/kl_sample_train_v1": first,
    "optim/kl_sample_train_v2": second,
    "optim/entropy": -maskedMean(
      data,
      data.map(({ logprobs }) => logprobs),
    ),
  };
}

/** How far the updated policy is from the one that sampled. */
export function prePostMetrics(
  data: readonly PolicyDatum[],
  newLogprobs: readonly ArrayLike<number>[],
): Numbers {
  if (!hasTrainedTokens(data)) return {};
  const { first, second } = distance(data, newLogprobs);
  return { kl_pre_post_v1: first, kl_pre_post_v2: second };
}

/**
 * Lengths, turns, rewards and what environments reported, under `env/all/`; under `env/TAG/` as well when a
 * tag covers some of the groups only.
 */
export function trajectoryMetrics(groups: readonly TrajectoryGroup[]): Numbers {
  const tags = [...new Set(groups.flatMap(({ tags: own }) => own))];
  const byTag = tags.map(
    (tag) => [tag, groups.filter(({ tags: own }) => own.includes(tag))] as const,
  );
  const metrics: Record<string, number> = {};
  if (byTag.some(([, tagged]) => tagged.length < groups.length)) {
    for (const [tag, tagged] of byTag)
      Object.assign(metrics, prefixed(`env/${tag}/`, summary(tagged)));
  }
  // Last: a tag of the name `all` does not hide the whole.
  return { ...metrics, ...prefixed("env/all/", summary(groups)) };
}

function summary(groups: readonly TrajectoryGroup[]): Record<string, number> {
  const trajectories = groups.flatMap(({ trajectories: own }) => own);
  if (trajectories.length === 0) return {};
  const turns = trajectories.flatMap(({ transitions }) => transitions);
  const actionTokens = turns.reduce((sum, { action }) => sum + action.tokens.length, 0);
  const observedTokens = turns.reduce((sum, { observation }) => sum + observation.length, 0);
  const rewards = groups.flatMap((group) =>
    group.trajectories.map((_, member) => totalReward(group, member)),
  );
  const perTurn = Math.max(turns.length, 1);
  return {
    ac_tokens_per_turn: actionTokens / perTurn,
    ob_tokens_per_turn: observedTokens / perTurn,
    turns_per_episode: turns.length / trajectories.length,
    total_episodes: trajectories.length,
    total_turns: turns.length,
    total_ac_tokens: actionTokens,
    total_ob_tokens: observedTokens,
    "reward/total": rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
    ...mergeMetrics([
      ...turns.map(({ metrics }) => metrics),
      ...groups.flatMap(({ metrics }) => metrics),
    ]),
    ...stopRates(groups),
    ...groupShares(groups),
  };
}

/** Means over the records that have a name; counts, which `isCount` finds by their name, are added up. */
export function mergeMetrics(
  records: readonly Numbers[],
  isCount: (name: string) => boolean = () => false,
): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      const entry = sums.get(name) ?? { sum: 0, count: 0 };
      sums.set(name, { sum: entry.sum + value, count: entry.count + 1 });
    }
  }
  return Object.fromEntries(
    [...sums].map(([name, { sum, count }]) => [name, isCount(name) ? sum : sum / count]),
  );
}

/** The share of episodes that ended for each reason. */
function stopRates(groups: readonly TrajectoryGroup[]): Record<string, number> {
  const reasons = groups.flatMap(({ trajectories }) =>
    trajectories.map(({ stopReason }) => stopReason),
  );
  const rates: Record<string, number> = {};
  for (const reason of reasons) {
    if (reason !== "")
      rates[`stop/${reason}`] = (rates[`stop/${reason}`] ?? 0) + 1 / reasons.length;
  }
  return rates;
}

function groupShares(groups: readonly TrajectoryGroup[]): Record<string, number> {
  const kinds = groups.map((group) => {
    const rewards = totalRewards(group);
    if (rewards.some((reward) => reward !== rewards[0])) return "mixed";
    return (rewards[0] ?? 0) >= 0.5 ? "all_good" : "all_bad";
  });
  const share = (kind: string): number =>
    kinds.filter((one) => one === kind).length / Math.max(kinds.length, 1);
  return Object.fromEntries(
    ["mixed", "all_good", "all_bad"].map((kind) => [`by_group/frac_${kind}`, share(kind)]),
  );
}

function distance(
  data: readonly PolicyDatum[],
  logprobs: readonly ArrayLike<number>[],
): { first: number; second: number } {
  const drift = data.map((datum, index) =>
    datum.logprobs.map((value, at) => value - logprobs[index]![at]!),
  );
  const squares = drift.map((values) => values.map((value) => value * value));
  return { first: maskedMean(data, drift), second: maskedMean(data, squares) / 2 };
}

function hasTrainedTokens(data: readonly PolicyDatum[]): boolean {
  return data.some(({ mask }) => mask.includes(1));
}

/** Metrics with a prefix in front of every name. */
export function prefixed(prefix: string, metrics: Numbers): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [prefix + name, value]));
}
