import { ArgumentError } from "tinker-ts";
import type { Line } from "tinker-ts/run-log";
import {
  completeWith,
  needWhole,
  runConfig,
  type Completed,
  type runDefaults,
  type RunOptions,
} from "../runs/index.js";
import { meanCentred, type AdvantageEstimator } from "./advantages.js";
import type { PolicyLoss } from "./policy-loss.js";
import type { DataAdjuster } from "./prepare-batch.js";
import { retryOnFailure, type ErrorTolerance, type TerminationPolicy } from "./rollout-group.js";
import type { RolloutHooks } from "./rollout.js";
import type { EnvironmentGroup, RolloutLimits } from "./types.js";

/** Groups to play, batch by batch. The same index gives groups that pose the same problems. */
export interface RlDataset {
  /** Batches there are. */
  readonly length: number;
  /** The groups of a batch. */
  batch(index: number): readonly EnvironmentGroup[] | Promise<readonly EnvironmentGroup[]>;
}

/** When groups are played and when the model is updated. */
export type RlMode =
  /** All groups of a batch are played, then trained. */
  | { readonly kind: "synchronous" }
  /** A batch is trained in parts, each as soon as its groups have been played; still with one policy. */
  | {
      readonly kind: "streaming";
      /** Parts of each substep; the groups of a substep must be a multiple of it. */
      readonly minibatches: number;
    }
  /** Groups are played while others are trained; those played with too old a policy are played again. */
  | {
      readonly kind: "asynchronous";
      /** Updates that may lie between playing a group and training it. */
      readonly maxStepsOffPolicy: number;
      /** Groups per update. */
      readonly groupsPerBatch: number;
    };

/** How a model is trained by rewards. */
export interface RlTrainOptions extends RunOptions {
  /** What is played. */
  readonly dataset: RlDataset;
  /** Most tokens of a turn. */
  readonly maxTokens: number;
  /** @default 1 */
  readonly temperature?: number | undefined;
  /** Positions that the model can read; turns are cut so that they fit. @default what the server tells */
  readonly contextWindow?: number | undefined;
  /** The rate of every update. */
  readonly learningRate: number;
  /** When groups are played and when the model is updated. @default synchronous */
  readonly mode?: RlMode | undefined;
  /** The loss on sampled tokens. @default importance_sampling */
  readonly loss?: PolicyLoss | undefined;
  /** How rewards become advantages. @default less the group's mean */
  readonly advantages?: AdvantageEstimator | undefined;
  /** Whether groups whose rewards are all equal are left out. @default false */
  readonly removeConstantRewardGroups?: boolean | undefined;
  /** Updates per batch, each with whole groups; more than one only with `ppo`. @default 1 */
  readonly numSubsteps?: number | undefined;
  /** Changes of the data before they are trained, such as `klPenalty`. */
  readonly adjusters?: readonly DataAdjuster[] | undefined;
  /** Whether the updated policy is compared with the one that sampled. @default false */
  readonly computePostKl?: boolean | undefined;
  /** Bounds of every episode. */
  readonly limits?: RolloutLimits | undefined;
  /** What a program does while episodes are played. */
  readonly hooks?: RolloutHooks | undefined;
  /** What limits do to rewards. */
  readonly termination?: TerminationPolicy | undefined;
  /** What happens when episodes fail. @default retryOnFailure */
  readonly tolerance?: ErrorTolerance | undefined;
  /** Groups under way at once. @default 64 */
  readonly maxConcurrentGroups?: number | undefined;
  /** Steps from one evaluation to the next, the first before step 0. @default 20 */
  readonly evalEvery?: number | undefined;
  /** Groups per step whose tokens are kept; 0 keeps none. @default 4 */
  readonly numGroupsToLog?: number | undefined;
  /** More that `config.json` shall say, for instance of a loop around this one. */
  readonly config?: Line | undefined;
}

const defaults = {
  recipeName: "rl",
  temperature: 1,
  mode: { kind: "synchronous" },
  loss: { name: "importance_sampling" },
  advantages: meanCentred,
  removeConstantRewardGroups: false,
  numSubsteps: 1,
  adjusters: [],
  computePostKl: false,
  tolerance: retryOnFailure,
  maxConcurrentGroups: 64,
  evalEvery: 20,
  numGroupsToLog: 4,
} as const;

/** Options with everything that has a default. */
export type CompleteRlOptions = Completed<RlTrainOptions, typeof runDefaults & typeof defaults>;

const wholeNumbers = {
  maxTokens: 1,
  numSubsteps: 1,
  maxConcurrentGroups: 1,
  numGroupsToLog: 0,
} as const;

/** Fills in what was left out and refuses what cannot be meant. */
export function completeRlOptions(options: RlTrainOptions): CompleteRlOptions {
  const complete: CompleteRlOptions = completeWith(options, defaults, wholeNumbers);
  const { learningRate, mode } = complete;
  if (!(learningRate > 0 && Number.isFinite(learningRate))) {
    throw new ArgumentError("learningRate", `must be a positive number, not ${learningRate}`);
  }
  if (mode.kind === "streaming") needWhole("mode.minibatches", mode.minibatches, 1);
  if (mode.kind === "asynchronous") {
    needWhole("mode.maxStepsOffPolicy", mode.maxStepsOffPolicy, 0);
    needWhole("mode.groupsPerBatch", mode.groupsPerBatch, 1);
  }
  needWhole("dataset.length", complete.dataset.length, 1);
  return complete;
}

/** What `config.json` says. */
export function toRlConfig(options: CompleteRlOptions): Line {
  const { mode, loss } = options;
  return {
    ...runConfig(options),
    learning_rate: options.learningRate,
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    loss_fn: loss.name,
    num_substeps: options.numSubsteps,
    advantages: options.advantages.name,
    remove_constant_reward_groups: options.removeConstantRewardGroups,
    compute_post_kl: options.computePostKl,
    mode: mode.kind,
    ...(mode.kind === "streaming" && {
      stream_minibatch_config: { num_minibatches: mode.minibatches },
    }),
    ...(mode.kind === "asynchronous" && {
      async_config: {
        max_steps_off_policy: mode.maxStepsOffPolicy,
        groups_per_batch: mode.groupsPerBatch,
      },
    }),
    num_groups_to_log: options.numGroupsToLog,
    ...options.config,
  };
}
