import {
  batchToData,
  computeAdvantages,
  discountedFutureSum,
  fullSequence,
  penalizeDistance,
  penalizeTeacherDistance,
  prePostMetrics,
  sampleTrainMetrics,
  totalRewards,
  trajectoryMetrics,
  trajectoryToData,
  withoutConstantGroups,
  type PolicyDatum,
  type Trajectory,
  type TrajectoryGroup,
} from "@tinker-ts/cookbook/rl";
import { scheduleMultiplier, type LearningRateSchedule } from "@tinker-ts/cookbook/hyperparameters";
import {
  dpo,
  pairLoss,
  preferenceMetrics,
  tournamentPairs,
  type TournamentPattern,
} from "@tinker-ts/cookbook/preference";
import { Datum, TensorData } from "tinker-ts";
import { expect } from "vitest";
import { plainChunks, toModelInput, type Chunk } from "./fixture-chunks.js";

interface TransitionCase {
  readonly ob: Chunk[];
  readonly ac: number[];
  readonly logprobs: number[];
  readonly reward?: number;
  readonly metrics?: Record<string, number>;
}

interface GroupCase {
  readonly trajectories: TransitionCase[][];
  readonly final_rewards: number[];
  readonly metrics?: Record<string, number>[];
}

interface RewardCase {
  readonly step_rewards: number[][];
  readonly final_rewards: number[];
}

interface TensorCase {
  readonly dtype: string;
  readonly data: number[];
}

interface DatumCase {
  readonly chunks: Chunk[];
  readonly target_tokens: TensorCase;
  readonly logprobs: TensorCase;
  readonly advantages: TensorCase;
  readonly mask: TensorCase;
}

type Sums = readonly number[];

/** Kinds of reinforcement learning and preferences; see the other kinds for the form. */
export const rlKinds: Readonly<Record<string, (input: never) => unknown>> = {
  advantages: ({ groups }: { groups: RewardCase[] }) => {
    const played = groups.map(toRewardGroup);
    return { total_rewards: played.map(totalRewards), advantages: computeAdvantages(played) };
  },
  constant_filter: ({ groups }: { groups: RewardCase[] }) => {
    const played = groups.map(toRewardGroup);
    return withoutConstantGroups(played).map((group) => played.indexOf(group));
  },
  trajectory: (input: { transitions: TransitionCase[]; advantage: number }) =>
    trajectoryToData(toTrajectory(input.transitions), input.advantage).map(plain),
  assemble: ({ groups, advantages }: { groups: GroupCase[]; advantages: number[][] }) => {
    const data = batchToData(
      groups.map((group) => toGroup(group)),
      advantages,
    );
    return {
      data: data.map(plain),
      metadata: data.map(({ group, member }) => ({ group_idx: group, traj_idx: member })),
    };
  },
  kl_penalty: (input: {
    data: DatumCase[];
    reference_logprobs: number[][];
    coef: number;
    discount: number;
  }) => {
    const data = input.data.map(toPolicyDatum);
    const { data: after, metrics } = penalizeDistance(data, input.reference_logprobs, {
      coefficient: input.coef,
      discount: input.discount,
    });
    return { advantages: after.map(advantagesOf), metrics, scored_sequences: data.map(scored) };
  },
  distill_penalty: (input: {
    data: DatumCase[];
    teacher_logprobs: number[][];
    dataset_indices: number[];
    coef: number;
    discount: number;
  }) => {
    const { data, metrics } = penalizeTeacherDistance(
      input.data.map(toPolicyDatum),
      input.teacher_logprobs,
      { coefficient: input.coef, discount: input.discount, datasets: input.dataset_indices },
    );
    return { advantages: data.map(advantagesOf), metrics };
  },
  discounted_sum: ({ x, gamma }: { x: number[]; gamma: number }) => [
    ...discountedFutureSum(x, gamma),
  ],
  kl_sample_train: (input: { data: DatumCase[]; training_logprobs: number[][] }) =>
    sampleTrainMetrics(input.data.map(toPolicyDatum), input.training_logprobs),
  kl_pre_post: (input: { data: DatumCase[]; new_logprobs: number[][] }) =>
    prePostMetrics(input.data.map(toPolicyDatum), input.new_logprobs),
  trajectory_metrics: ({ groups, tags }: { groups: GroupCase[]; tags: string[][] }) =>
    trajectoryMetrics(groups.map((group, index) => toGroup(group, tags[index]))),
  tournament_pairs: (input: { members: number; pattern: TournamentPattern; chunk_size: number }) =>
    tournamentPairs(input.members, { pattern: input.pattern, chunkSize: input.chunk_size }),
  dpo_sums: (input: {
    chosen: Sums;
    rejected: Sums;
    chosen_reference: Sums;
    rejected_reference: Sums;
    beta: number;
  }) => {
    const pairs = input.chosen.map((chosen, pair) => ({
      chosen: chosen - input.chosen_reference[pair]!,
      rejected: input.rejected[pair]! - input.rejected_reference[pair]!,
      chosenTokens: 1,
      rejectedTokens: 1,
    }));
    const loss = dpo({ beta: input.beta });
    const values = pairs.map((pair) => loss.at(pair).value);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return {
      loss: mean,
      metrics: { ...preferenceMetrics(pairs, input.beta), dpo_loss: mean },
    };
  },
  dpo: (input: DpoCase) => dpoCase(input),
};

interface DpoCase {
  readonly data: readonly (Pick<DatumCase, "chunks" | "target_tokens"> & { weights: TensorCase })[];
  readonly logprobs: number[][];
  readonly reference_logprobs: number[][];
  readonly beta: number;
  readonly base_learning_rate: number;
  readonly schedule: LearningRateSchedule;
  readonly step: number;
  readonly total_steps: number;
}

function dpoCase(input: DpoCase): unknown {
  const data = input.data.map(
    ({ chunks, target_tokens: targets, weights }) =>
      new Datum({
        modelInput: toModelInput(chunks),
        lossFnInputs: { target_tokens: targets.data, weights: weights.data },
      }),
  );
  const logprobs = input.logprobs.map((values) =>
    TensorData.fromTypedArray(Float32Array.from(values)),
  );
  const { loss, gradients, metrics } = pairLoss(
    dpo({ beta: input.beta }),
    data,
    logprobs,
    input.reference_logprobs.map((values) => Float32Array.from(values)),
  );
  const multiplier = scheduleMultiplier(input.schedule, input.step, input.total_steps);
  return {
    loss,
    gradients: gradients.map((gradient) => [...gradient]),
    metrics: {
      ...metrics,
      num_pairs: data.length / 2,
      num_tokens: data.reduce((sum, { modelInput }) => sum + modelInput.length, 0),
      learning_rate: input.base_learning_rate * multiplier,
      progress: input.step / input.total_steps,
    },
    scored_sequences: data.map(({ modelInput, lossFnInputs }) =>
      plainScored(modelInput, Number(lossFnInputs["target_tokens"]!.data.at(-1))),
    ),
  };
}

/** What we do instead where a case is tagged as a weakness of the reference. */
export const mended: Readonly<
  Record<string, (compute: () => unknown, expected: unknown, input: never) => void | Promise<void>>
> = {
  // Nothing is trained in such a datum, so it is not sent at all.
  int_advantages: (compute, expected) =>
    expect(compute()).toEqual(
      (expected as DatumCase[]).filter(({ advantages }) => advantages.dtype === "float32"),
    ),
  no_action_tokens: (compute) => expect(compute()).toEqual({}),
  odd_datums: (compute) => expect(compute).toThrow(/must be pairs/),
  // The penalty stays on sampled tokens; there it is the reference's.
  discount_leak: (compute, expected, input: { data: DatumCase[] }) => {
    const { advantages } = compute() as { advantages: number[][] };
    const theirs = (expected as { advantages: number[][] }).advantages;
    for (const [index, { mask, advantages: before }] of input.data.entries()) {
      for (const [at, bit] of mask.data.entries()) {
        const value = bit === 1 ? theirs[index]![at]! : before.data[at]!;
        expect(advantages[index]![at]).toBeCloseTo(value, 4);
      }
    }
  },
};

/** What a scoring model is asked about a datum. */
function scored(datum: PolicyDatum): Chunk[] {
  return plainScored(datum.input, datum.targets.at(-1)!);
}

function plainScored(input: PolicyDatum["input"], last: number): Chunk[] {
  const asked = fullSequence({ input, targets: Int32Array.of(last) });
  expect(asked.length).toBe(input.length + 1);
  return [...plainChunks(input), { tokens: [last] }];
}

function toRewardGroup({
  step_rewards: steps,
  final_rewards: finals,
}: RewardCase): TrajectoryGroup {
  return toGroup({
    trajectories: steps.map((rewards) =>
      rewards.map((reward) => ({ ob: [], ac: [], logprobs: [], reward })),
    ),
    final_rewards: finals,
  });
}

function toGroup(group: GroupCase, tags: readonly string[] = []): TrajectoryGroup {
  return {
    trajectories: group.trajectories.map(toTrajectory),
    finalRewards: group.final_rewards,
    metrics: group.metrics ?? group.trajectories.map(() => ({})),
    tags,
  };
}

function toTrajectory(transitions: readonly TransitionCase[]): Trajectory {
  return {
    stopReason: "",
    transitions: transitions.map(({ ob, ac, logprobs, reward = 0, metrics = {} }) => ({
      observation: toModelInput(ob),
      action: {
        tokens: Int32Array.from(ac),
        logprobs: Float32Array.from(logprobs),
        stopReason: "stop",
      },
      reward,
      metrics,
      logs: {},
      masked: (metrics["parse_error_masked"] ?? 0) >= 1,
    })),
  };
}

function toPolicyDatum(datum: DatumCase): PolicyDatum {
  return {
    input: toModelInput(datum.chunks),
    targets: Int32Array.from(datum.target_tokens.data),
    logprobs: Float32Array.from(datum.logprobs.data),
    advantages: Float32Array.from(datum.advantages.data),
    mask: Float32Array.from(datum.mask.data),
    group: 0,
    member: 0,
  };
}

function plain({ input, targets, logprobs, advantages, mask }: PolicyDatum): unknown {
  const floats = (data: Float32Array): TensorCase => ({ dtype: "float32", data: [...data] });
  return {
    chunks: plainChunks(input),
    target_tokens: { dtype: "int64", data: [...targets] },
    logprobs: floats(logprobs),
    advantages: floats(advantages),
    mask: floats(mask),
  };
}

function advantagesOf({ advantages }: PolicyDatum): number[] {
  return [...advantages];
}
