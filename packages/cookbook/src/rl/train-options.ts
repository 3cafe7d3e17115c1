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
import type { PolicyLoss } from "./policy-datum.js";
import type { DataAdjuster } from "./batch-update.js";
import { retryOnFailure, type ErrorTolerance, type TerminationPolicy } from "./rollout-group.js";
import type { RolloutHooks } from "./rollout.js";
import type { EnvironmentGroup, RolloutLimits } from "./types.js";

/** Groups to play, batch by batch. The same index must return groups with the same problems. */
export interface RlDataset {
  /** The number of batches. */
  readonly length: number;
  /** The groups of a batch. */
  batch(index: number): readonly EnvironmentGroup[] | Promise<readonly EnvironmentGroup[]>;
}

/** The groups of a batch; a dataset of the program may return anything. */
export async function groupsOf(
  dataset: RlDataset,
  index: number,
): Promise<readonly EnvironmentGroup[]> {
  const groups: unknown = await dataset.batch(index);
  if (Array.isArray(groups) && groups.length > 0) return groups as readonly EnvironmentGroup[];
  throw new ArgumentError(`dataset.batch(${index})`, "must return a list with at least one group");
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
      /** The maximum number of updates between playing a group and training on it. */
      readonly maxStepsOffPolicy: number;
      /** Groups per update. */
      readonly groupsPerBatch: number;
    };

/** Options of training by rewards. */
export interface RlTrainOptions extends RunOptions {
  /** The groups to play. */
  readonly dataset: RlDataset;
  /** The maximum number of tokens of a turn. */
  readonly maxTokens: number;
  /** Sampling temperature. @default 1 */
  readonly temperature?: number | undefined;
  /** The model's context length; turns are cut to fit. @default as the server reports it */
  readonly contextWindow?: number | undefined;
  /** Learning rate of every update. */
  readonly learningRate: number;
  /** When groups are played and when the model is updated. @default synchronous */
  readonly mode?: RlMode | undefined;
  /** The loss on sampled tokens. @default importance_sampling */
  readonly loss?: PolicyLoss | undefined;
  /** How rewards become advantages. @default less the group's mean */
  readonly advantages?: AdvantageEstimator | undefined;
  /** Whether groups of equal rewards are left out. @default false */
  readonly removeConstantRewardGroups?: boolean | undefined;
  /** Updates per batch, each with whole groups; more than one only with `ppo`. @default 1 */
  readonly numSubsteps?: number | undefined;
  /** Changes of the data before they are trained, such as `klPenalty`. */
  readonly adjusters?: readonly DataAdjuster[] | undefined;
  /** Whether the updated policy is compared with the one that sampled. @default false */
  readonly computePostKl?: boolean | undefined;
  /** Bounds of every episode. */
  readonly limits?: RolloutLimits | undefined;
  /** Callbacks during episodes. */
  readonly hooks?: RolloutHooks | undefined;
  /** The effect of limits on rewards. */
  readonly termination?: TerminationPolicy | undefined;
  /** The handling of failed episodes. @default retryOnFailure */
  readonly tolerance?: ErrorTolerance | undefined;
  /** Steps in a row in which every episode failed until the run ends with an error; 0 means never. @default 3 */
  readonly maxFailedSteps?: number | undefined;
  /** The maximum number of groups in flight. @default 64 */
  readonly maxConcurrentGroups?: number | undefined;
  /** Steps between evaluations, the first before step 0; 0 means never. @default 20 */
  readonly evalEvery?: number | undefined;
  /** The number of groups per step to log with their tokens. @default 4 */
  readonly numGroupsToLog?: number | undefined;
  /** Further settings for `config.json`, for instance of a loop around this one. */
  readonly config?: Line | undefined;
  /** Names of inputs that cannot be compared when the run is resumed. @default the functions among the options */
  readonly notCompared?: readonly string[] | undefined;
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
  maxFailedSteps: 3,
  maxConcurrentGroups: 64,
  evalEvery: 20,
  numGroupsToLog: 4,
} as const;

/** Options with their defaults. */
export type CompleteRlOptions = Completed<RlTrainOptions, typeof runDefaults & typeof defaults>;

const wholeNumbers = {
  maxTokens: 1,
  maxFailedSteps: 0,
  numSubsteps: 1,
  maxConcurrentGroups: 1,
  numGroupsToLog: 0,
} as const;

/** Options with their defaults; refuses values that make no sense. */
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

/** The options that are functions, which cannot be compared. */
export function functionsOf({ loss, adjusters, hooks }: CompleteRlOptions): string[] {
  return [
    "dataset",
    ...(Object.values(loss).some((value) => typeof value === "function") ? ["loss"] : []),
    ...(adjusters.length > 0 ? ["adjusters"] : []),
    ...(hooks ? ["hooks"] : []),
  ];
}

/** The settings of a run by rewards in `config.json`. */
export function toRlConfig(options: CompleteRlOptions): Line {
  const { mode, loss } = options;
  const { name, ...lossSettings } = loss;
  return {
    ...runConfig(options),
    learning_rate: options.learningRate,
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    loss_fn: name,
    loss_settings: plain(lossSettings),
    limits: plain(options.limits),
    termination: plain(options.termination),
    max_failed_steps: options.maxFailedSteps,
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

/** Settings without the functions among them. */
function plain(settings: object | undefined): Line | undefined {
  return settings && (JSON.parse(JSON.stringify(settings)) as Line);
}
