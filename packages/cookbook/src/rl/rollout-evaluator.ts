import { fileNameOf } from "tinker-ts/run-log";
import type { Evaluator } from "../evaluation/index.js";
import { trajectoryMetrics } from "./metrics.js";
import { GroupPlayer, type PlayOptions } from "./play-groups.js";
import { samplingPolicy, type SamplingPolicyOptions } from "./policy.js";
import { rolloutSummaries } from "./records.js";
import { minViableGroup } from "./rollout-group.js";
import { totalRewards, type EnvironmentGroup, type TrajectoryGroup } from "./types.js";

/** How a model plays what it is not trained on. */
export interface RolloutEvaluatorOptions
  extends SamplingPolicyOptions, Partial<Omit<PlayOptions, "signal">> {
  /** What is played; called every time. */
  readonly groups: () => readonly EnvironmentGroup[] | Promise<readonly EnvironmentGroup[]>;
  /** Goes before the names of the metrics. @default "test" */
  readonly name?: string | undefined;
  /** Makes evaluations repeatable as far as their environments are. @default 0 */
  readonly seed?: number | undefined;
}

/**
 * Plays groups that are not trained with the weights as they are: `NAME/env/all/…` like the metrics of training, and
 * `NAME/pass@G`, the share of groups of G tries of which one or more earned something. Summaries of the episodes go to
 * `eval_NAME_rollout_summaries.jsonl` of the step. Give it the temperature and the limits of the training to compare both.
 */
export function rolloutEvaluator(options: RolloutEvaluatorOptions): Evaluator {
  const { groups, name = "test", seed = 0, tolerance = minViableGroup } = options;
  return {
    name,
    async evaluate({ sampler, step, log, signal = new AbortController().signal }) {
      const { maxConcurrentGroups = 64 } = options;
      const player = new GroupPlayer({ ...options, tolerance, maxConcurrentGroups });
      const policy = samplingPolicy(await sampler(), options);
      const posed = await groups();
      const playing = posed.map((group, place) =>
        player.play(policy, group, { seeds: [seed, place], signal }),
      );
      const played = (await Promise.all(playing)).flatMap((one) => one?.trajectories ?? []);
      const place = {
        split: `eval/${name}`,
        iteration: step,
        samplerSteps: played.map(() => step),
      };
      const lines = rolloutSummaries(played, place);
      if (lines.length > 0) {
        log?.logIteration(step, `eval_${fileNameOf(name)}_rollout_summaries.jsonl`, lines);
      }
      const found = { ...trajectoryMetrics(played), ...passes(played), ...player.metrics() };
      return Object.fromEntries(
        Object.entries(found).map(([key, value]) => [`${name}/${key}`, value]),
      );
    },
  };
}

/** The share of groups in which a try earned something, by the number of tries. */
function passes(played: readonly TrajectoryGroup[]): Record<string, number> {
  if (played.length === 0) return {};
  const tries = Math.max(...played.map(({ trajectories }) => trajectories.length));
  const passed = played.filter((group) => totalRewards(group).some((reward) => reward > 0));
  return { [`pass@${tries}`]: passed.length / played.length };
}
