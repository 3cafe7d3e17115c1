import { ArgumentError } from "tinker-ts";

/** Refuses a reward that is not a finite number: a missing return value, a text, NaN. */
export function checkReward(field: string, reward: unknown): asserts reward is number {
  if (typeof reward === "number" && Number.isFinite(reward)) return;
  const found = typeof reward === "string" ? `the text ${JSON.stringify(reward)}` : String(reward);
  throw new ArgumentError(field, `must be a finite number, not ${found}`);
}

/** A grade as a reward: a number, or true for 1 and false for 0. */
export function rewardOf(grade: unknown): number {
  if (typeof grade === "boolean") return Number(grade);
  checkReward("grade", grade);
  return grade;
}
