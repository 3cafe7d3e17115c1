import { ModelInput } from "tinker-ts";
import type { Line, Rollout } from "tinker-ts/run-log";
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
    group.trajectories.map(({ transitions, stopReason, finalObservation }, member): Line => {
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
        final_ob_len: finalObservation?.length ?? 0,
      };
    }),
  );
}

/**
 * One line per datum: every position of the sequence with what the sampler said of it and what it is worth.
 *
 * `tokens`, `texts`, `logprobs`, `advantages` and `mask` are equally long: entry i is about position i of what was read and
 * sampled. The first position, and whatever was not sampled, has 0 in the last three; positions of a picture have the
 * token null.
 */
export function transcripts(
  data: readonly PolicyDatum[],
  { split, iteration }: Pick<RecordPlace, "split" | "iteration">,
  options: {
    /** The episodes that the data were made of, for their rewards. */
    readonly groups?: readonly TrajectoryGroup[] | undefined;
    /** Makes texts of tokens. */
    readonly decode?: ((tokens: Iterable<number>) => string) | undefined;
  } = {},
): Line[] {
  const { groups, decode } = options;
  return data.map(({ input, targets, logprobs, advantages, mask, group, member }) => {
    const tokens: (number | null)[] = input.chunks.flatMap((chunk) =>
      chunk.type === "encoded_text"
        ? [...chunk.tokens]
        : Array.from({ length: new ModelInput({ chunks: [chunk] }).length }, () => null),
    );
    tokens.push(targets.at(-1)!);
    const played = groups?.[group];
    return {
      schema_version: 1,
      split,
      iteration,
      group_idx: group,
      traj_idx: member,
      ...(played ? { total_reward: totalReward(played, member) } : {}),
      tokens,
      logprobs: [0, ...rounded(logprobs)],
      advantages: [0, ...rounded(advantages)],
      mask: [0, ...mask],
      ...(decode
        ? {
            text: decode(tokens.filter((token) => token !== null)),
            texts: tokens.map((token) => (token === null ? "" : decode([token]))),
          }
        : {}),
    };
  });
}

/** Episodes as the studio shows them, by group: with advantages where they were trained on. */
export function shownRollouts(
  groups: readonly TrajectoryGroup[],
  data: readonly PolicyDatum[],
): Rollout[][] {
  return groups.map((group, groupIndex) =>
    group.trajectories.map(({ transitions, stopReason }, member): Rollout => {
      const datum = data.find((one) => one.group === groupIndex && one.member === member);
      const logs = transitions.flatMap((transition) =>
        Object.entries(transition.logs ?? {}).map(([name, value]) => `${name}: ${String(value)}`),
      );
      return {
        reward: totalReward(group, member),
        stopReason,
        metrics: { ...group.metrics[member] },
        logs,
        ...(datum && isText(datum) ? datumColumns(datum) : {}),
      };
    }),
  );
}

function isText({ input }: Pick<PolicyDatum, "input">): boolean {
  return input.chunks.every(({ type }) => type === "encoded_text");
}

/** Lists of a datum are about its targets, which begin at the second token. */
function datumColumns({ input, targets, logprobs, advantages, mask }: PolicyDatum) {
  const shifted = (values: Float32Array): number[] => [0, ...values];
  const most = advantages.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
  return {
    tokens: [...input.toInts(), targets.at(-1)!],
    mask: shifted(mask),
    logprobs: shifted(logprobs),
    advantages: shifted(advantages),
    advantage: most,
  };
}

function rounded(values: Float32Array): number[] {
  return Array.from(values, (value) => Number(value.toPrecision(7)));
}
