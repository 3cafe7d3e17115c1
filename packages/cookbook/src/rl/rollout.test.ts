import { describe, expect, it } from "vitest";
import {
  failFast,
  GroupFailedError,
  groupOf,
  minViableGroup,
  retryOnFailure,
  rollout,
  rolloutGroup,
  type Action,
  type Environment,
  type EnvironmentGroup,
  type Policy,
  type Trajectory,
} from "./index.js";

/** Answers each prompt with its length. */
const echo: Policy = ({ input, maxTokens = 2 }) =>
  Promise.resolve(actionOf(Array.from({ length: Math.min(maxTokens, 2) }, () => input.length)));

function actionOf(tokens: readonly number[]): Action {
  return {
    tokens: Int32Array.from(tokens),
    logprobs: new Float32Array(tokens.length).fill(-0.5),
    stopReason: "stop",
  };
}

/** Goes on for some turns; every turn is worth 1. */
function counting(turns: number, closed: () => void = () => {}): Environment {
  const seen: number[] = [1];
  return {
    start: () => ({ input: [...seen] }),
    step({ tokens }) {
      seen.push(...tokens, 9);
      turns--;
      return turns > 0 ? { reward: 1, next: { input: [...seen] } } : { reward: 1 };
    },
    close: closed,
  };
}

const forever: Policy = () => new Promise(() => {});

describe("a rollout", () => {
  it("plays turns until the environment has no next prompt", async () => {
    const { transitions, stopReason } = await rollout(echo, counting(3));
    expect(stopReason).toBe("completed");
    expect(transitions.map(({ observation }) => observation.length)).toEqual([1, 4, 7]);
    expect(transitions.map(({ action }) => [...action.tokens])).toEqual([
      [1, 1],
      [4, 4],
      [7, 7],
    ]);
  });

  it("lets a hook change prompts, lift a limit for a turn, and name the end", async () => {
    const asked: [string, number, number][] = [];
    const { transitions, stopReason } = await rollout(echo, counting(9), {
      limits: { maxTurns: 1 },
      hooks: {
        onTurn: ({ input }, { transitions: played }) =>
          played.length === 1 ? { input: [...(input as number[]), 5] } : undefined,
        onStop: (reason, { transitions: played, sampledTokens }) => {
          asked.push([reason, played.length, sampledTokens]);
          return played.length < 3 ? null : "enough";
        },
      },
    });
    expect(asked).toEqual([
      ["max_turns", 1, 2],
      ["max_turns", 2, 4],
      ["max_turns", 3, 6],
    ]);
    expect(stopReason).toBe("enough");
    expect(transitions.map(({ observation }) => observation.length)).toEqual([1, 5, 7]);
    const over = await rollout(echo, counting(1), { hooks: { onStop: () => null } });
    expect(over.stopReason).toBe("completed");
  });

  it("passes the episode and its end to a hook", async () => {
    const ends: [string, boolean][] = [];
    const hooks = {
      onEnd: ({ stopReason }: Trajectory, { byEnvironment }: { byEnvironment: boolean }) =>
        void ends.push([stopReason, byEnvironment]),
    };
    await rollout(echo, counting(1), { hooks });
    await rollout(echo, counting(9), { hooks, limits: { maxTurns: 1 } });
    await rollout(forever, counting(9), { hooks, limits: { timeoutMs: 10 } });
    await rollout(
      echo,
      { ...counting(1), start: () => ({ overflow: true, reward: 0 }) },
      { hooks },
    );
    expect(ends).toEqual([
      ["completed", true],
      ["max_turns", false],
      ["rollout_timeout", false],
      ["context_overflow", true],
    ]);
  });

  it("uses the environment's limits by default", async () => {
    const environment = (): Environment => ({ ...counting(9), limits: { maxTurns: 2 } });
    expect((await rollout(echo, environment())).transitions).toHaveLength(2);
    const limits = { maxTurns: 3 };
    expect((await rollout(echo, environment(), { limits })).transitions).toHaveLength(3);
  });

  it("records in its last turn the reason of the end, and how often it continued after a cut", async () => {
    const cut: Policy = async (request) => ({ ...(await echo(request)), stopReason: "length" });
    const { transitions } = await rollout(cut, counting(3));
    expect(transitions.map(({ metrics }) => metrics)).toEqual([
      {},
      {},
      { "stop/completed": 1, num_truncations_max_turn_tokens: 2 },
    ]);
    const whole = await rollout(echo, counting(2));
    expect(whole.transitions.at(-1)!.metrics).toEqual({ "stop/completed": 1 });
  });

  it("keeps the prompt that a limit left unanswered", async () => {
    const limited = await rollout(echo, counting(9), { limits: { maxTurns: 2 } });
    expect(limited.finalObservation!.length).toBe(7);
    expect((await rollout(echo, counting(2))).finalObservation).toBeUndefined();
  });

  it("fails by a hook that throws, and still closes", async () => {
    let closed = 0;
    const onTurn = (): never => {
      throw new Error("no");
    };
    const environment = counting(1, () => closed++);
    await expect(rollout(echo, environment, { hooks: { onTurn } })).rejects.toThrow("no");
    expect(closed).toBe(1);
  });

  it.each([
    ["max_turns", { maxTurns: 2 }, 2],
    ["max_tokens", { maxTrajectoryTokens: 8 }, 2],
    ["max_sampled_tokens", { maxSampledTokens: 5 }, 2],
  ])("ends by %s and keeps its turns", async (reason, limits, turns) => {
    const { transitions, stopReason } = await rollout(echo, counting(10), { limits });
    expect(stopReason).toBe(reason);
    expect(transitions).toHaveLength(turns);
  });

  it("requests no more tokens than every limit leaves", async () => {
    const asked: (number | undefined)[] = [];
    const policy: Policy = (request) => {
      asked.push(request.maxTokens);
      return echo(request);
    };
    const limits = { maxTurnTokens: 100, maxSampledTokens: 7, maxTrajectoryTokens: 11 };
    await rollout(policy, counting(10), { limits });
    expect(asked).toEqual([7, 5, 3]);
  });

  it("keeps finished turns at its timeout, even if the signal is ignored", async () => {
    let turns = 0;
    const policy: Policy = (request) => (turns++ < 2 ? echo(request) : forever(request));
    const { transitions, stopReason } = await rollout(policy, counting(10), {
      limits: { timeoutMs: 50 },
    });
    expect(stopReason).toBe("rollout_timeout");
    expect(transitions).toHaveLength(2);
  });

  it("fails when one turn takes too long", async () => {
    const limits = { turnTimeoutMs: 20 };
    await expect(rollout(forever, counting(1), { limits })).rejects.toThrow(/timeout/i);
  });

  it("closes the environment once, also when it throws or is aborted", async () => {
    let closed = 0;
    const close = (): void => void closed++;
    await rollout(echo, counting(1, close));
    const broken = { ...counting(1, close), step: () => Promise.reject(new Error("broken")) };
    await expect(rollout(echo, broken)).rejects.toThrow("broken");
    const abort = new AbortController();
    const given = rollout(forever, counting(1, close), { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(given).rejects.toThrow("enough");
    expect(closed).toBe(3);
  });

  it("gives every turn a seed of its own that follows from the episode's", async () => {
    const seedsOf = async (seed: number): Promise<unknown[]> => {
      const seeds: unknown[] = [];
      await rollout((request) => (seeds.push(request.seed), echo(request)), counting(3), { seed });
      return seeds;
    };
    const seeds = await seedsOf(1);
    expect(new Set(seeds).size).toBe(3);
    expect(await seedsOf(1)).toEqual(seeds);
    expect(await seedsOf(2)).not.toEqual(seeds);
  });

  it("trains nothing of an episode if its first prompt does not fit", async () => {
    const environment: Environment = {
      start: () => ({ overflow: true, reward: -0.1 }),
      step: () => Promise.reject(new Error("never")),
    };
    const { transitions, stopReason } = await rollout(echo, environment);
    expect(stopReason).toBe("context_overflow");
    expect(transitions[0]).toMatchObject({ reward: -0.1 });
    expect(transitions[0]!.action.tokens).toHaveLength(0);
  });
});

/** A group of which given tries fail: `failures[member]` many of each member. */
function flaky(failures: number[]): { group: EnvironmentGroup; made: () => number } {
  const left = [...failures];
  let made = 0;
  const group = groupOf({
    size: failures.length,
    make: (member) => {
      made++;
      const fails = left[member]!-- > 0;
      const step = (): never => {
        throw new Error(`member ${member} fails`);
      };
      return fails
        ? { ...counting(1), step }
        : { ...counting(1), start: () => ({ input: [member] }) };
    },
  });
  return { group, made: () => made };
}

describe("a group", () => {
  const members = async (
    group: EnvironmentGroup,
    tolerance = retryOnFailure,
  ): Promise<number[]> => {
    const { trajectories } = await rolloutGroup(echo, group, { tolerance });
    return trajectories.map(({ transitions }) => transitions[0]!.observation.toInts()[0]!);
  };

  it("returns episodes in the order of its members, with failures replayed", async () => {
    const { group, made } = flaky([1, 0, 2, 0]);
    expect(await members(group)).toEqual([0, 1, 2, 3]);
    expect(made()).toBe(7);
  });

  describe("closes every environment that was ever made, once", () => {
    /** A group whose environments count how often each was closed. */
    const counted = (size: number, fails: (made: number) => boolean, failsToMake = -1) => {
      const closed: number[] = [];
      const group = groupOf({
        size,
        make: () => {
          const number = closed.length;
          if (number === failsToMake) throw new Error("no sandbox is left");
          closed.push(0);
          const step = (): never => {
            throw new Error(`environment ${number} fails`);
          };
          const environment = counting(1, () => void closed[number]!++);
          return fails(number) ? { ...environment, step } : environment;
        },
      });
      return { group, closed };
    };

    it("a retry makes one environment and not a whole group", async () => {
      const { group, closed } = counted(4, (made) => made === 1);
      await members(group);
      expect(closed).toEqual([1, 1, 1, 1, 1]);
    });

    it("also when the retries are used up", async () => {
      const { group, closed } = counted(2, (made) => made !== 0);
      await expect(members(group)).rejects.toThrow(GroupFailedError);
      expect(closed).toEqual(Array(5).fill(1));
    });

    it("also when an environment cannot be made", async () => {
      const { group, closed } = counted(3, () => false, 2);
      await expect(members(group)).rejects.toThrow("no sandbox is left");
      expect(closed).toEqual([1, 1]);
    });

    it("also when a time limit ends an episode that hangs", async () => {
      const { group, closed } = counted(2, () => false);
      const limited = { ...failFast, timeoutMs: 20 };
      const played = rolloutGroup(forever, group, { tolerance: limited });
      await expect(played).rejects.toThrow(GroupFailedError);
      expect(closed).toEqual([1, 1]);
    });
  });

  it("fails when the retries are used up", async () => {
    const { group } = flaky([4, 0]);
    await expect(members(group)).rejects.toThrow(GroupFailedError);
    await expect(members(flaky([4, 0]).group)).rejects.toThrow(/member 0 fails/);
  });

  it("counts the retries of members that fail at the same time", async () => {
    const { group, made } = flaky([9, 9, 9]);
    await expect(members(group)).rejects.toThrow(GroupFailedError);
    expect(made()).toBeLessThanOrEqual(6);
  });

  it("fails at once on request", async () => {
    const { group, made } = flaky([1, 0]);
    await expect(members(group, failFast)).rejects.toThrow(/member 0 fails/);
    expect(made()).toBe(2);
  });

  it("accepts three quarters if that is enough", async () => {
    expect(await members(flaky([0, 9, 0, 0]).group, minViableGroup)).toEqual([0, 2, 3]);
    expect(await members(flaky([0, 9, 1, 0]).group, minViableGroup)).toHaveLength(3);
    await expect(members(flaky([9, 9, 0, 0]).group, minViableGroup)).rejects.toThrow(
      GroupFailedError,
    );
  });

  it("is replayed as a whole if its members share state", async () => {
    let tries = 0;
    let closed = 0;
    const group: EnvironmentGroup = {
      environments: () => {
        tries++;
        const fails = tries < 3;
        const waiting: Environment = {
          start: () => ({ input: [1] }),
          step: (_, { signal }) =>
            fails
              ? new Promise((_resolve, reject) => {
                  signal.addEventListener("abort", () => reject(new Error("partner is gone")));
                })
              : { reward: 0 },
        };
        const failing: Environment = {
          start: () => ({ input: [2] }),
          step: () => (fails ? Promise.reject(new Error("lost")) : { reward: 1 }),
        };
        return [waiting, failing];
      },
      close: () => void closed++,
    };
    const { trajectories } = await rolloutGroup(echo, group);
    expect(trajectories).toHaveLength(2);
    expect([tries, closed]).toEqual([3, 3]);
  });

  it("stops the others, and waits for them, when it fails", async () => {
    const ended: number[] = [];
    const group: EnvironmentGroup = {
      environments: () =>
        [0, 1].map((member) => ({
          start: () => ({ input: [member] }),
          step: (_: Action, { signal }: { signal: AbortSignal }) =>
            member === 0
              ? Promise.reject(new Error("lost"))
              : new Promise<never>((_resolve, reject) => {
                  signal.addEventListener("abort", () => reject(new Error("stopped")));
                }),
          close: () => void ended.push(member),
        })),
    };
    await expect(rolloutGroup(echo, group, { tolerance: failFast })).rejects.toThrow("lost");
    expect(new Set(ended)).toEqual(new Set([0, 1]));
  });

  it("replays an episode that hangs, after a timeout", async () => {
    let hangs = true;
    const policy: Policy = (request) => {
      if (!hangs) return echo(request);
      hangs = false;
      return forever(request);
    };
    const errors: unknown[] = [];
    const group = groupOf({ size: 2, make: () => counting(1) });
    const { trajectories } = await rolloutGroup(policy, group, {
      tolerance: { ...retryOnFailure, timeoutMs: 20 },
      onError: (error) => errors.push(error),
    });
    expect(trajectories.map(({ stopReason }) => stopReason)).toEqual(["completed", "completed"]);
    expect(errors).toEqual([expect.objectContaining({ name: "TimeoutError" })]);
  });

  describe("with members that share their prompt", () => {
    /** Answers with its number among those that were asked for together; alone with 99. */
    const counted = (): { policy: Policy; asked: number[][] } => {
      const asked: number[][] = [];
      const alone: Policy = async ({ input }) => {
        asked.push([...input.toInts()]);
        return actionOf([99]);
      };
      const many: NonNullable<Policy["many"]> = async ({ input }, count) => {
        asked.push([...input.toInts(), count]);
        return Array.from({ length: count }, (_, index) => actionOf([index]));
      };
      return { policy: Object.assign(alone, { many }), asked };
    };
    const play = (policy: Policy, make: (member: number) => Environment) =>
      rolloutGroup(policy, groupOf({ size: 4, sharesPrompt: true, make }), { seed: 1 });
    const firsts = ({ trajectories }: { trajectories: readonly Trajectory[] }): number[][] =>
      trajectories.map(({ transitions }) => [...transitions[0]!.action.tokens]);

    it("requests their first turns together, and the rest one by one", async () => {
      const { policy, asked } = counted();
      const group = await play(policy, (member) => ({
        ...counting(2),
        start: async () => {
          for (let wait = member; wait < 4; wait++) await Promise.resolve();
          return { input: [1] };
        },
      }));
      expect(firsts(group)).toEqual([[0], [1], [2], [3]]);
      expect(asked[0]).toEqual([1, 4]);
      expect(asked).toHaveLength(5);
    });

    it("does not wait for members that have no turn, fail, or read something else", async () => {
      const { policy, asked } = counted();
      let failures = 0;
      const starts = [
        () => ({ overflow: true as const, reward: 0 }),
        () => (failures++ === 0 ? Promise.reject(new Error("no")) : { input: [1] }),
        () => ({ input: [7] }),
        () => ({ input: [1] }),
      ];
      const group = await play(policy, (member) => ({ ...counting(1), start: starts[member]! }));
      expect(firsts(group)).toEqual([[], [99], [99], [99]]);
      expect(asked).toEqual([[7], [1], [1]]);
    });

    it("requests one by one when the joint request fails", async () => {
      const { policy } = counted();
      let requests = 0;
      const many = (): Promise<never> => (requests++, Promise.reject(new Error("lost")));
      const group = groupOf({ size: 3, sharesPrompt: true, make: () => counting(1) });
      const failing = Object.assign(policy, { many });
      const played = await rolloutGroup(failing, group, { tolerance: failFast });
      expect(firsts(played)).toEqual([[99], [99], [99]]);
      expect(requests).toBe(1);
    });
  });

  it("adds the group's own rewards, and refuses another number of rewards", async () => {
    const graded = groupOf({
      size: 2,
      make: () => counting(1),
      rewards: () => [{ reward: 2, metrics: { won: 1 } }, { reward: -2 }],
    });
    const { finalRewards, metrics } = await rolloutGroup(echo, graded);
    expect(finalRewards).toEqual([2, -2]);
    expect(metrics).toEqual([{ won: 1 }, {}]);
    const wrong = groupOf({ size: 2, make: () => counting(1), rewards: () => [] });
    await expect(rolloutGroup(echo, wrong)).rejects.toThrow(/one per episode \(2\), got 0/);
  });

  it("removes rewards earned at a limit on request", async () => {
    const group = groupOf({ size: 1, make: () => counting(9) });
    const limits = { maxTurns: 2 };
    const { finalRewards, metrics } = await rolloutGroup(echo, group, {
      limits,
      termination: { zeroRewardOnLimit: true },
    });
    expect(finalRewards).toEqual([-2]);
    expect(metrics).toEqual([{ zero_reward_on_limit: 1 }]);
    expect((await rolloutGroup(echo, group, { limits })).finalRewards).toEqual([0]);
  });

  it.each([
    ["when all ran out of time and would earn nothing", true, 0, 0],
    ["never, where they may earn something", false, 1, 2],
  ])("is left ungraded %s", async (_, zeroRewardOnLimit, grades, reward) => {
    let graded = 0;
    const group = groupOf({
      size: 1,
      make: () => counting(1),
      rewards: () => (graded++, [{ reward: 2 }]),
    });
    const termination = { zeroRewardOnLimit, skipsGradingOnTimeout: true };
    const limits = { timeoutMs: 10 };
    const { finalRewards } = await rolloutGroup(forever, group, { limits, termination });
    expect([graded, finalRewards]).toEqual([grades, [reward]]);
    const quick = await rolloutGroup(echo, group, { termination });
    expect([graded, quick.finalRewards]).toEqual([grades + 1, [2]]);
  });

  it("fails when grading takes too long, and rejects with the reason when it is aborted", async () => {
    const slow = groupOf({
      size: 1,
      make: () => counting(1),
      rewards: () => new Promise(() => {}),
    });
    const termination = { gradingTimeoutMs: 20 };
    await expect(rolloutGroup(echo, slow, { termination })).rejects.toThrow(/could not be graded/);
    const abort = new AbortController();
    const given = rolloutGroup(forever, slow, { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(given).rejects.toThrow("enough");
  });
});
