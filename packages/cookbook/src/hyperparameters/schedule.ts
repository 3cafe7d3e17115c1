import { ArgumentError } from "tinker-ts";

/** Learning rate schedule of a run; a function gets the step and the number of steps. */
export type LearningRateSchedule =
  | "constant"
  | "linear"
  | "cosine"
  | ((step: number, totalSteps: number) => number);

const schedules = {
  constant: () => 1,
  linear: (step: number, totalSteps: number) => 1 - step / totalSteps,
  cosine: (step: number, totalSteps: number) => 0.5 * (1 + Math.cos((Math.PI * step) / totalSteps)),
};

/**
 * The factor of the peak rate at a step from 0; the last step of `linear` is not at 0. A warm-up
 * rises evenly to the peak, its first step at 1 / `warmupSteps`, and the schedule spans the rest.
 */
export function scheduleMultiplier(
  schedule: LearningRateSchedule,
  step: number,
  totalSteps: number,
  { warmupSteps = 0 } = {},
): number {
  if (!(totalSteps > 0)) {
    throw new ArgumentError("totalSteps", `must be positive, not ${totalSteps}`);
  }
  if (typeof schedule !== "function" && !Object.hasOwn(schedules, schedule)) {
    const names = Object.keys(schedules).join(", ");
    throw new ArgumentError("schedule", `"${schedule}" must be a function or one of ${names}`);
  }
  if (step < warmupSteps) return (step + 1) / warmupSteps;
  const shape = typeof schedule === "function" ? schedule : schedules[schedule];
  return shape(step - warmupSteps, Math.max(1, totalSteps - warmupSteps));
}
