import type { StudioExhibit } from "tinker-ts/wire/studio";
import { numberOrNull } from "../../data/numbers.js";

/** Rollouts of one prompt. */
export interface Group {
  readonly name: string;
  readonly members: readonly StudioExhibit[];
  /** Its size, including rollouts hidden by a filter. */
  readonly size: number;
  /** Mean and standard deviation of all its rewards. */
  readonly mean: number | null;
  readonly deviation: number | null;
  /** False if all advantages are zero or, without advantages, if all rewards are equal. */
  readonly hasGradient: boolean;
}

/** The orders of rollouts. */
export type Order = "group" | "advantage" | "reward" | "-reward" | "length" | "deviation";

/** The choices, with their names. */
export const orders: readonly { readonly value: Order; readonly name: string }[] = [
  { value: "group", name: "group" },
  { value: "advantage", name: "largest |advantage|" },
  { value: "-reward", name: "highest reward" },
  { value: "reward", name: "lowest reward" },
  { value: "deviation", name: "most varied groups" },
  { value: "length", name: "longest" },
];

/** Rollouts by group; figures are of the whole group, regardless of filters. */
export function groupsOf(
  kept: readonly StudioExhibit[],
  all: readonly StudioExhibit[],
): readonly Group[] {
  const byName = (list: readonly StudioExhibit[]): Map<string, StudioExhibit[]> => {
    const groups = new Map<string, StudioExhibit[]>();
    for (const exhibit of list) {
      const name = nameOf(exhibit);
      const members = groups.get(name);
      if (members) members.push(exhibit);
      else groups.set(name, [exhibit]);
    }
    return groups;
  };
  const whole = byName(all);
  return [...byName(kept)].map(([name, members]): Group => {
    const everyone = whole.get(name) ?? members;
    const rewards = everyone.flatMap(({ reward }) => numberOrNull(reward) ?? []);
    const mean =
      rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length;
    const variance =
      mean === null
        ? null
        : rewards.reduce((sum, one) => sum + (one - mean) ** 2, 0) / rewards.length;
    return {
      name,
      members,
      size: everyone.length,
      mean,
      deviation: variance === null ? null : Math.sqrt(variance),
      hasGradient: pulls(everyone, rewards),
    };
  });
}

/** Groups and their members in an order. */
export function sortedGroups(groups: readonly Group[], order: Order): readonly Group[] {
  if (order === "group") return groups;
  if (order === "deviation") {
    return groups.toSorted((one, other) => (other.deviation ?? -1) - (one.deviation ?? -1));
  }
  const key = (exhibit: StudioExhibit): number => {
    if (order === "length") return -exhibit.tokenCount;
    if (order === "advantage") return -Math.abs(numberOrNull(exhibit.advantage) ?? 0);
    const reward = numberOrNull(exhibit.reward) ?? Infinity;
    return order === "reward" ? reward : -reward;
  };
  const least = (group: Group): number => Math.min(...group.members.map(key));
  return groups
    .map((group) => ({
      ...group,
      members: group.members.toSorted((one, other) => key(one) - key(other)),
    }))
    .toSorted((one, other) => least(one) - least(other));
}

// Only some of a group may be stored: their advantages describe all, equal rewards of a few do not.
function pulls(everyone: readonly StudioExhibit[], rewards: readonly number[]): boolean {
  const advantages = everyone.flatMap(({ advantage }) => numberOrNull(advantage) ?? []);
  if (advantages.length > 0) return advantages.some((advantage) => advantage !== 0);
  return rewards.length < 2 || rewards.some((reward) => reward !== rewards[0]);
}

function nameOf({ group, split }: StudioExhibit): string {
  const name = group === null ? "without a group" : `group ${group}`;
  return split === "train" ? name : `${split}, ${name}`;
}
