import { ModelInput } from "tinker-ts";
import { describe, expect, it } from "vitest";
import { meanCentred } from "./advantages.js";
import { trajectoryMetrics } from "./metrics.js";
import { penalizeTeacherDistance } from "./penalties.js";
import { batchToData } from "./policy-datum.js";
import { prepareBatch } from "./batch-update.js";
import type { TrajectoryGroup } from "./types.js";

/** One episode per reward, each of one turn. */
function groupOf(
  rewards: readonly number[],
  { masked = false, tags = [] }: { masked?: boolean; tags?: readonly string[] } = {},
): TrajectoryGroup {
  return {
    trajectories: rewards.map((reward) => ({
      stopReason: "completed",
      transitions: [
        {
          observation: ModelInput.fromInts([10, 11]),
          action: {
            tokens: Int32Array.of(20),
            logprobs: Float32Array.of(-0.5),
            stopReason: "stop",
          },
          reward,
          metrics: {},
          logs: {},
          masked,
        },
      ],
    })),
    finalRewards: rewards.map(() => 0),
    metrics: rewards.map(() => ({})),
    tags,
  };
}

describe("an episode with all turns masked", () => {
  const groups = [groupOf([0, 1], { masked: true }), groupOf([0, 1])];

  it("is a datum that teaches nothing, and is not sent", async () => {
    const all = batchToData(groups, [
      [-1, 1],
      [-1, 1],
    ]);
    expect(all.map(({ advantages }) => [...advantages])).toEqual([
      [0, 0],
      [0, 0],
      [0, -1],
      [0, 1],
    ]);
    const { data } = await prepareBatch(
      groups,
      { advantages: meanCentred, removeConstantRewardGroups: false, adjusters: [] },
      { step: 0, training: undefined as never },
    );
    expect(data.map(({ group }) => group)).toEqual([1, 1]);
  });

  it("has no distance from its teacher", () => {
    const data = batchToData(groups, [
      [0, 0],
      [0, 0],
    ]);
    const teachers = data.map(({ mask }) => new Float32Array(mask.length).fill(-1));
    const { metrics } = penalizeTeacherDistance(data, teachers, {
      coefficient: 1,
      datasets: [0, 0, 1, 1],
    });
    expect(metrics).toEqual({ teacher_kl: 0.5, "teacher_kl/dataset_1": 0.5 });
  });
});

it("a tag named `all` does not hide the metrics of all groups", () => {
  const metrics = trajectoryMetrics([groupOf([0, 0], { tags: ["all"] }), groupOf([1, 1])]);
  expect(metrics).toMatchObject({ "env/all/total_episodes": 4, "env/all/reward/total": 0.5 });
});
