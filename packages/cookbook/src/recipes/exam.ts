import type { SamplingClient } from "tinker-ts";
import { rolloutGroup, samplingPolicy } from "../rl/index.js";
import type { EnvironmentGroup, RolloutLimits, TrajectoryGroup } from "../rl/index.js";
import type { RecipeContext } from "./recipe.js";

/** How a model is examined. */
export interface ExamOptions {
  /** Most tokens of a turn. */
  readonly maxTokens: number;
  /** @default 1 */
  readonly temperature?: number | undefined;
  /** Bounds of every episode. */
  readonly limits?: RolloutLimits | undefined;
  /** Makes the exam repeatable. */
  readonly seed: number;
  /** Gives the exam up. */
  readonly signal?: AbortSignal | undefined;
}

/** How an exam went. */
export interface Exam {
  /** What was played. */
  readonly played: readonly TrajectoryGroup[];
  /** Mean over all episodes of what they reported in their last turn under a name; 0 where one reported nothing. */
  readonly rate: (metric: string) => number;
}

/** Plays groups with a model and trains nothing. */
export async function examine(
  sampling: SamplingClient,
  groups: readonly EnvironmentGroup[],
  options: ExamOptions,
): Promise<Exam> {
  const policy = samplingPolicy(sampling, options);
  const played = await Promise.all(
    groups.map((group, index) =>
      rolloutGroup(policy, group, { ...options, seed: options.seed + index }),
    ),
  );
  const episodes = played.flatMap(({ trajectories }) => trajectories);
  return {
    played,
    rate: (metric) => {
      const values = episodes.map(({ transitions }) => transitions.at(-1)?.metrics[metric] ?? 0);
      return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
    },
  };
}

/** How many questions an exam has: few where a recipe is only to be seen at work. */
export function examSize({ maxSteps }: RecipeContext, questions: number): number {
  return maxSteps === undefined ? questions : Math.min(questions, 4 * maxSteps);
}

/** The model as it was made, or with the weights of a checkpoint. */
export function openSampler(
  { service, model, signal }: RecipeContext,
  samplerPath?: string,
): Promise<SamplingClient> {
  return service.createSamplingClient(
    samplerPath === undefined ? { baseModel: model, signal } : { modelPath: samplerPath, signal },
  );
}

/** A share for people. */
export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
