import { ArgumentError, TinkerError } from "tinker-ts";
import { untilAborted } from "../evaluation/index.js";
import { FirstTurns, type Policy } from "./policy.js";
import { checkReward } from "./reward.js";
import { closeQuietly, rollout, type RolloutHooks } from "./rollout.js";
import { mixSeeds } from "./seeds.js";
import type {
  Environment,
  EnvironmentGroup,
  GroupReward,
  RolloutLimits,
  Trajectory,
  TrajectoryGroup,
} from "./types.js";

/** The handling of failed episodes. */
export interface ErrorTolerance {
  /** Episodes of a group that may be played again. */
  readonly maxRetries: number;
  /** Episodes that must succeed: all of them, or a share of the group; beyond it failures are left out. */
  readonly minSuccessful: "all" | number;
  /** Whether a group that fails is skipped; otherwise it ends the run. */
  readonly skipsGroup: boolean;
  /** Milliseconds after which an episode has failed, whatever it played; limits keep what was played. @default none */
  readonly timeoutMs?: number | undefined;
}

/** The first failure ends the run. */
export const failFast: ErrorTolerance = { maxRetries: 0, minSuccessful: "all", skipsGroup: false };

/** Failed episodes are played again, three times per group; then the group is skipped. */
export const retryOnFailure: ErrorTolerance = {
  maxRetries: 3,
  minSuccessful: "all",
  skipsGroup: true,
};

/** Three quarters of a group are enough; as many failures as that allows are left out. */
export const minViableGroup: ErrorTolerance = {
  maxRetries: 3,
  minSuccessful: 0.75,
  skipsGroup: true,
};

/** The effect of limits on rewards. */
export interface TerminationPolicy {
  /** Whether an episode that a limit ended may earn nothing above 0. @default false */
  readonly zeroRewardOnLimit?: boolean | undefined;
  /** Which reasons are limits. @default all limits of `RolloutLimits`, and `max_tool_calls` */
  readonly limitReasons?: readonly string[] | undefined;
  /**
   * Whether a group is left ungraded when all its episodes ran out of time; this needs `zeroRewardOnLimit`, with which it
   * could earn nothing above 0.
   * @default false
   */
  readonly skipsGradingOnTimeout?: boolean | undefined;
  /** The timeout of the group's `rewards` in milliseconds. */
  readonly gradingTimeoutMs?: number | undefined;
}

/** Options of playing a group. */
export interface RolloutGroupOptions {
  /** Bounds of every episode. */
  readonly limits?: RolloutLimits | undefined;
  /** Callbacks during episodes. */
  readonly hooks?: RolloutHooks | undefined;
  /** The effect of limits on rewards. */
  readonly termination?: TerminationPolicy | undefined;
  /** The handling of failed episodes. @default retryOnFailure */
  readonly tolerance?: ErrorTolerance | undefined;
  /** Makes the episodes repeatable as far as their environments are. */
  readonly seed?: number | undefined;
  /** Aborts the group. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the error of every failed episode, and of a failed grading. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A group that could not be played or graded. */
export class GroupFailedError extends TinkerError {
  override readonly name = "GroupFailedError";
  readonly blamesUser = true;

  constructor(message: string, cause: unknown) {
    super(message, { code: "group_failed", cause });
  }
}

/**
 * Plays all episodes of a group at once and lets the group grade them.
 *
 * A failed episode is played again in another environment of the group (`replace`); where the group has none,
 * because its members share something, the whole group is played again. Everything that was started has
 * ended, and is closed, when this settles. Trajectories come in the order of their environments.
 */
export async function rolloutGroup(
  policy: Policy,
  group: EnvironmentGroup,
  options: RolloutGroupOptions = {},
): Promise<TrajectoryGroup> {
  const { tolerance = retryOnFailure } = options;
  const retries = { left: tolerance.maxRetries };
  for (;;) {
    const outcome = await tryGroup(policy, group, { ...options, tolerance }, retries);
    if (outcome !== "again") return outcome;
  }
}

/** Episodes that may still be played again; shared by all tries at a group. */
interface Retries {
  left: number;
}

interface Played {
  readonly trajectory: Trajectory;
  readonly environment: Environment;
}

type GroupOptions = RolloutGroupOptions & { readonly tolerance: ErrorTolerance };

async function tryGroup(
  policy: Policy,
  group: EnvironmentGroup,
  options: GroupOptions,
  retries: Retries,
): Promise<TrajectoryGroup | "again"> {
  options.signal?.throwIfAborted();
  try {
    const environments = await group.environments();
    if (environments.length === 0) {
      throw new ArgumentError("environments", "a group needs at least one");
    }
    const played = await playAll(policy, group, environments, options, retries);
    return played === "again" ? "again" : await grade(group, played, options);
  } finally {
    await closeQuietly(group);
  }
}

/** Plays the episodes of one try; settles when all of them have ended. */
async function playAll(
  policy: Policy,
  group: EnvironmentGroup,
  environments: readonly Environment[],
  { limits, hooks, seed = 0, signal: outer, tolerance, onError }: GroupOptions,
  retries: Retries,
): Promise<Played[] | "again"> {
  const others = new AbortController();
  const signal = outer ? AbortSignal.any([outer, others.signal]) : others.signal;
  const { minSuccessful } = tolerance;
  const needed =
    minSuccessful === "all" ? environments.length : Math.ceil(minSuccessful * environments.length);
  const firstTurns = group.sharesPrompt
    ? new FirstTurns(policy, environments.length, { seed, signal })
    : undefined;
  let hopeful = environments.length;
  let verdict: "again" | { readonly failure: unknown } | undefined;

  const giveUp = (why: typeof verdict): undefined => {
    verdict = why;
    others.abort(new Error("another episode of the group failed"));
    return undefined;
  };

  const play = async (first: Environment, member: number): Promise<Played | undefined> => {
    let environment = first;
    for (let attempt = 0; ; attempt++) {
      try {
        const own = attempt === 0 ? firstTurns?.of(member) : undefined;
        const trajectory = await rollout(own ?? policy, environment, {
          limits,
          hooks,
          seed: mixSeeds(seed, member, attempt),
          signal: timed(signal, tolerance.timeoutMs),
        });
        firstTurns?.leave(member);
        return { trajectory, environment };
      } catch (error) {
        firstTurns?.leave(member);
        if (signal.aborted) return undefined;
        onError?.(error);
        if (hopeful > needed) {
          hopeful--;
          return undefined;
        }
        if (retries.left <= 0) return giveUp({ failure: error });
        // Taken before anything is awaited: others may fail meanwhile.
        retries.left--;
        const replacement = await group.replace?.(member);
        if (!replacement) return giveUp("again");
        environment = replacement;
      }
    }
  };

  const played = await Promise.all(environments.map(play));
  outer?.throwIfAborted();
  if (verdict === "again") return verdict;
  if (verdict)
    throw new GroupFailedError(`An episode failed: ${messageOf(verdict.failure)}`, verdict.failure);
  return played.filter((one) => one !== undefined);
}

async function grade(
  group: EnvironmentGroup,
  played: readonly Played[],
  { termination = {}, signal: outer, onError }: RolloutGroupOptions,
): Promise<TrajectoryGroup> {
  const trajectories = played.map(({ trajectory }) => trajectory);
  const signal = timed(outer, termination.gradingTimeoutMs);
  let rewards: readonly GroupReward[];
  try {
    const environments = played.map(({ environment }) => environment);
    const isGraded = !skipsGrading(trajectories, termination);
    const graded = isGraded ? group.rewards?.(trajectories, environments, { signal }) : undefined;
    rewards = (await untilAborted(signal, graded)) ?? trajectories.map(() => ({ reward: 0 }));
    for (const [member, { reward }] of rewards.entries()) {
      checkReward(`rewards[${member}].reward`, reward);
    }
  } catch (error) {
    outer?.throwIfAborted();
    onError?.(error);
    throw new GroupFailedError(`The group could not be graded: ${messageOf(error)}`, error);
  }
  if (rewards.length !== trajectories.length) {
    throw new ArgumentError(
      "rewards",
      `must be one per episode (${trajectories.length}), got ${rewards.length}`,
    );
  }
  const results = trajectories.map((trajectory, member) =>
    bounded(trajectory, rewards[member]!, termination),
  );
  return {
    trajectories,
    finalRewards: results.map(({ reward }) => reward),
    metrics: results.map(({ metrics = {} }) => metrics),
    tags: group.tags ?? [],
  };
}

const limits = [
  "max_tokens",
  "max_sampled_tokens",
  "max_turns",
  "max_tool_calls",
  "rollout_timeout",
];

/** Whether a group that would earn nothing anyway is left ungraded. */
function skipsGrading(
  trajectories: readonly Trajectory[],
  { zeroRewardOnLimit, limitReasons = limits, skipsGradingOnTimeout }: TerminationPolicy,
): boolean {
  const timeout = "rollout_timeout";
  if (!skipsGradingOnTimeout || !zeroRewardOnLimit || !limitReasons.includes(timeout)) return false;
  return trajectories.every(({ stopReason }) => stopReason === timeout);
}

/** A signal that is also aborted when a time is over. */
function timed(signal: AbortSignal | undefined, timeoutMs: number | undefined): AbortSignal {
  const timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  return AbortSignal.any([signal, timeout].filter((one) => one !== undefined));
}

/** Takes back what an episode earned above 0 when a limit ended it, where that is wanted. */
function bounded(
  { transitions, stopReason }: Trajectory,
  final: GroupReward,
  { zeroRewardOnLimit = false, limitReasons = limits }: TerminationPolicy,
): GroupReward {
  if (!zeroRewardOnLimit || !limitReasons.includes(stopReason)) return final;
  const earned = transitions.reduce((sum, { reward }) => sum + reward, 0);
  if (earned + final.reward <= 0) return final;
  return { reward: -earned, metrics: { ...final.metrics, zero_reward_on_limit: 1 } };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
