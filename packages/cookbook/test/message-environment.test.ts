import {
  messageEnvironment,
  problemEnvironment,
  rollout,
  type Conversation,
  type MessageEnvironmentOptions,
  type Policy,
  type Trajectory,
} from "@tinker-ts/cookbook/rl";
import { expect, it } from "vitest";
import { talkRenderer } from "./support/talk-renderer.js";

const renderer = talkRenderer();

/** Answers one text after the other; a text without a newline has no clean end, and "…" is where it was cut off. */
function sayer(...texts: string[]): Policy {
  let turn = 0;
  return async () => {
    const text = texts[turn++]!;
    const tokens = renderer.tokens(text.replace("…", ""));
    return {
      tokens,
      logprobs: new Float32Array(tokens.length).fill(-1),
      stopReason: text.endsWith("…") ? "length" : "stop",
    };
  };
}

/** Two turns, each worth 1. */
function twoTurns(): Conversation {
  let turns = 0;
  return {
    start: () => [{ role: "user", content: "Begin." }],
    reply: () => (turns++ === 0 ? { reward: 1, messages: more } : { reward: 1 }),
  };
}

const more = [{ role: "user", content: "Go on." }];

const play = (
  policy: Policy,
  options: Partial<MessageEnvironmentOptions> = {},
): Promise<Trajectory> => rollout(policy, messageEnvironment(twoTurns(), { renderer, ...options }));

const rewardsOf = ({ transitions }: Trajectory): number[] =>
  transitions.map(({ reward }) => reward);

it("adds the answer and the reply to the next prompt", async () => {
  const { transitions, stopReason } = await play(sayer("one\n", "two\n"));
  expect(stopReason).toBe("completed");
  expect(renderer.spell(transitions[1]!.observation.toInts())).toBe(
    "user: Begin.\nassistant: one\nuser: Go on.\nassistant: ",
  );
});

it("ends at an answer without a clean end", async () => {
  const trajectory = await play(sayer("one"));
  expect(trajectory.stopReason).toBe("parse_error");
  expect(rewardsOf(trajectory)).toEqual([-1]);
  expect(trajectory.transitions[0]!.metrics).toEqual({ parse_error: 1, "stop/parse_error": 1 });
});

it("repeats the same prompt after such an answer if it does not end there", async () => {
  const parseErrors = { endsEpisode: false, reward: -0.5, masksTurns: true };
  const trajectory = await play(sayer("hm", "one\n", "two\n"), { parseErrors });
  expect(rewardsOf(trajectory)).toEqual([-0.5, 1, 1]);
  const [first, again] = trajectory.transitions.map(({ observation }) =>
    renderer.spell(observation.toInts()),
  );
  expect(again).toBe(first);
  expect(trajectory.transitions.map(({ masked }) => masked)).toEqual([true, false, false]);
  expect(trajectory.transitions[0]!.metrics).toEqual({ parse_error: 1, parse_error_masked: 1 });
});

it("ends at an answer that was cut off, or continues and counts it", async () => {
  const ended = await play(sayer("one…"), { overflowReward: -0.25 });
  expect([ended.stopReason, rewardsOf(ended)]).toEqual(["max_tokens", [-0.25]]);
  expect(ended.transitions[0]!.metrics).toMatchObject({ max_tokens_reached: 1 });
  const gone = await play(sayer("one…", "two\n"), { endsOnLength: false });
  expect([gone.stopReason, rewardsOf(gone)]).toEqual(["completed", [1, 1]]);
  expect(gone.transitions[1]!.metrics).toMatchObject({ num_truncations_max_turn_tokens: 1 });
});

it("ends when the next prompt does not fit, with the reward for that; an earlier end is unchanged", async () => {
  const second = renderer.buildGenerationPrompt([
    { role: "user", content: "Begin." },
    { role: "assistant", content: "one" },
    ...more,
  ]).length;
  const bounds = (maxTrajectoryTokens: number) => ({ maxTrajectoryTokens, maxGenerationTokens: 5 });
  const fits = await play(sayer("one\n", "two\n"), bounds(second + 5));
  expect([fits.stopReason, rewardsOf(fits)]).toEqual(["completed", [1, 1]]);
  const over = await play(sayer("one\n"), bounds(second + 4));
  expect([over.stopReason, rewardsOf(over)]).toEqual(["context_overflow", [-0.1]]);
  expect(over.transitions[0]!.metrics).toMatchObject({ context_overflow: 1 });
  const never = await play(sayer(), bounds(10));
  expect([never.stopReason, rewardsOf(never)]).toEqual(["context_overflow", [-0.1]]);
});

it.each([
  ["right\n", {}, 1, { correct: 1, format: 1 }],
  ["wrong\n", {}, 0, { correct: 0, format: 1 }],
  ["right!\n", {}, 0.9, { correct: 1, format: 0 }],
  ["wrong!\n", { formatCoefficient: 0.5 }, -0.5, { correct: 0, format: 0 }],
])("a problem answered by %j with %j is worth %d", async (said, options, reward, metrics) => {
  const environment = problemEnvironment(
    {
      prompt: "?",
      grade: (answer) => answer.startsWith("right"),
      hasFormat: (answer) => !answer.endsWith("!"),
    },
    { renderer, ...options },
  );
  const { transitions } = await rollout(sayer(said), environment);
  expect(transitions[0]!.reward).toBeCloseTo(reward, 12);
  expect(transitions[0]!.metrics).toMatchObject(metrics);
});
