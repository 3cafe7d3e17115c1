import type { ModelInput, ModelInputLike } from "tinker-ts";

/** Bounds of an episode; absent ones do not apply. */
export interface RolloutLimits {
  /** Turns. */
  readonly maxTurns?: number | undefined;
  /** Positions of prompt and answer together. */
  readonly maxTrajectoryTokens?: number | undefined;
  /** Tokens sampled over all turns. */
  readonly maxSampledTokens?: number | undefined;
  /** Tokens sampled in one turn. */
  readonly maxTurnTokens?: number | undefined;
  /** Milliseconds for the episode; what was played until then is kept. */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds for sampling one turn; the episode fails, since there is nothing to keep. */
  readonly turnTimeoutMs?: number | undefined;
}

/** Where a sampled turn ends: texts or token ids. */
export type StopCondition = readonly string[] | readonly number[];

/** The input of the policy for a turn. */
export interface Observation {
  /** The whole prompt of this turn. */
  readonly input: ModelInputLike;
  /** Where the turn ends. @default where the model itself ends */
  readonly stop?: StopCondition | undefined;
}

/** An episode that ends before it begins, for instance because its prompt does not fit. */
export interface Overflow {
  /** Marks the kind of beginning. */
  readonly overflow: true;
  /** Why there is nothing to play. @default "context_overflow" */
  readonly stopReason?: string | undefined;
  /** What the episode is worth; it counts in the group's mean and trains nothing. */
  readonly reward: number;
  /** Numbers to average. */
  readonly metrics?: Numbers | undefined;
}

/** Numbers by name; they are averaged over a batch. */
export type Numbers = Readonly<Record<string, number>>;

/** The action of the policy in a turn. */
export interface Action {
  /** The sampled tokens. */
  readonly tokens: Int32Array;
  /** Their log-probabilities when they were sampled. */
  readonly logprobs: Float32Array;
  /** Why sampling ended: `stop`, `length`. */
  readonly stopReason: string;
}

/** What an environment may use while it works. */
export interface StepContext {
  /** Aborted when the rollout is given up. */
  readonly signal: AbortSignal;
}

/** The result of an action. */
export interface StepResult {
  /** Reward of this turn. */
  readonly reward: number;
  /** The next prompt; absent when the episode is over. */
  readonly next?: Observation | undefined;
  /** Why the episode is over. @default "completed" */
  readonly stopReason?: string | undefined;
  /** Numbers to average. */
  readonly metrics?: Numbers | undefined;
  /** Texts and numbers to show; they are not averaged. */
  readonly logs?: Readonly<Record<string, string | number>> | undefined;
  /** Whether the turn is left out of training, for instance because it could not be read. */
  readonly masked?: boolean | undefined;
}

/** One episode; it is used once. */
export interface Environment {
  /** Bounds that apply when the caller gives none. */
  readonly limits?: RolloutLimits | undefined;
  /** The first prompt. */
  start(context: StepContext): Observation | Overflow | Promise<Observation | Overflow>;
  /** Takes an action. */
  step(action: Action, context: StepContext): StepResult | Promise<StepResult>;
  /** Releases the resources of the episode; always called once, with the error of a failed episode. */
  close?(failure?: unknown): void | Promise<void>;
}

/** The reward of an episode from its group, after all episodes ended. */
export interface GroupReward {
  /** Added to the rewards of the episode's turns. */
  readonly reward: number;
  /** Numbers to average. */
  readonly metrics?: Numbers | undefined;
}

/** Episodes with rewards to compare, for instance tries at one problem. */
export interface EnvironmentGroup {
  /** Names by which metrics are also reported, for instance the data set. */
  readonly tags?: readonly string[] | undefined;
  /**
   * Whether the members begin with the same prompt and do not wait for each other: then all of their first turns are
   * sampled in one request, which costs a fraction.
   * @default false
   */
  readonly sharesPrompt?: boolean | undefined;
  /** Makes the episodes; called again when the group is tried again. */
  environments(): readonly Environment[] | Promise<readonly Environment[]>;
  /**
   * Makes another episode for one that failed. Without it, or when it returns nothing, a failure tries the
   * whole group again: members may share a game.
   */
  replace?(index: number): Environment | undefined | Promise<Environment | undefined>;
  /** Rewards that need all episodes, for instance a tournament. @default none */
  rewards?(
    trajectories: readonly Trajectory[],
    environments: readonly Environment[],
    context: StepContext,
  ): readonly GroupReward[] | Promise<readonly GroupReward[]>;
  /** Releases the resources of the group; always called once per try. */
  close?(): void | Promise<void>;
}

/** One turn of an episode. */
export interface Transition {
  /** The prompt. */
  readonly observation: ModelInput;
  /** What the policy did. */
  readonly action: Action;
  /** Reward of the turn. */
  readonly reward: number;
  /** Numbers to average. */
  readonly metrics: Numbers;
  /** Texts and numbers to show. */
  readonly logs: Readonly<Record<string, string | number>>;
  /** Whether the turn is left out of training. */
  readonly masked: boolean;
}

/** An episode that was played. */
export interface Trajectory {
  /** Its turns, in order. */
  readonly transitions: readonly Transition[];
  /** Why it ended. */
  readonly stopReason: string;
  /** What the policy would have read next where a limit ended it; absent where the environment did. */
  readonly finalObservation?: ModelInput | undefined;
}

/** The episodes of a group and their rewards. */
export interface TrajectoryGroup {
  /** Those that were played to an end, in the order of their environments. */
  readonly trajectories: readonly Trajectory[];
  /** What the group added to each. */
  readonly finalRewards: readonly number[];
  /** What the group reported of each. */
  readonly metrics: readonly Numbers[];
  /** Names by which metrics are also reported. */
  readonly tags: readonly string[];
}

/** The total reward of an episode. */
export function totalReward(group: TrajectoryGroup, member: number): number {
  const { transitions } = group.trajectories[member]!;
  return transitions.reduce((sum, { reward }) => sum + reward, group.finalRewards[member] ?? 0);
}

/** The total rewards of the episodes of a group. */
export function totalRewards(group: TrajectoryGroup): number[] {
  return group.trajectories.map((_, member) => totalReward(group, member));
}
