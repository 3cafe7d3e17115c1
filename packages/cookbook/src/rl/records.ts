import type { Line, LineValue } from "tinker-ts/run-log";
import type { PolicyDatum } from "./policy-datum.js";
import { totalReward, type TrajectoryGroup } from "./types.js";

/** Which part of a run a record belongs to. */
export interface RecordPlace {
  /** `train` or `eval/NAME`. */
  readonly split: string;
  /** The iteration. */
  readonly iteration: number;
  /** Updates that the sampler had seen, one per group. */
  readonly samplerSteps: readonly number[];
}

/** One line per episode: lengths, rewards and what environments reported. */
export function rolloutSummaries(
  groups: readonly TrajectoryGroup[],
  { split, iteration, samplerSteps }: RecordPlace,
): Line[] {
  return groups.flatMap((group, groupIndex) =>
    group.trajectories.map(({ transitions, stopReason }, member): Line => {
      const last = transitions.length - 1;
      return {
        schema_version: 1,
        split,
        iteration,
        group_idx: groupIndex,
        traj_idx: member,
        tags: [...group.tags],
        sampling_client_step: samplerSteps[groupIndex],
        total_reward: totalReward(group, member),
        final_reward: group.finalRewards[member],
        stop_reason: stopReason,
        trajectory_metrics: { ...group.metrics[member] },
        steps: transitions.map(({ observation, action, reward, metrics, logs }, index) => ({
          step_idx: index,
          ob_len: observation.length,
          ac_len: action.tokens.length,
          reward,
          episode_done: index === last,
          metrics: { ...metrics },
          logs: { ...logs },
        })),
      };
    }),
  );
}

/** One line per datum: every token with what the sampler said of it and what it is worth. */
export function transcripts(
  data: readonly PolicyDatum[],
  { split, iteration }: Pick<RecordPlace, "split" | "iteration">,
  decode?: (tokens: Iterable<number>) => string,
): Line[] {
  return data.map(({ input, targets, logprobs, advantages, mask, group, member }) => {
    const isText = input.chunks.every(({ type }) => type === "encoded_text");
    const tokens = isText ? [...input.toInts(), targets.at(-1)!] : [...targets];
    return {
      schema_version: 1,
      split,
      iteration,
      group_idx: group,
      traj_idx: member,
      tokens,
      logprobs: rounded(logprobs),
      advantages: rounded(advantages),
      mask: [...mask],
      ...(decode ? { text: decode(tokens) } : {}),
    };
  });
}

function rounded(values: Float32Array): LineValue {
  return Array.from(values, (value) => Number(value.toPrecision(7)));
}
