import { textOf } from "@tinker-ts/cookbook/renderers";
import {
  failFast,
  gameGroup,
  guessNumber,
  messageCompleter,
  messageEnvironment,
  minViableGroup,
  modelAnswerer,
  rollout,
  rolloutGroup,
  totalRewards,
  twentyQuestions,
  type Game,
  type Policy,
} from "@tinker-ts/cookbook/rl";
import { describe, expect, it } from "vitest";
import { talkRenderer } from "./support/talk-renderer.js";

/** Each takes one to three sticks in turn; the taker of the last one wins. */
function sticks(count: number, players = 2): Game {
  let left = count;
  let turn = 0;
  let winner: number | undefined;
  return {
    players,
    get turn() {
      return winner === undefined ? turn : undefined;
    },
    observe: () => `${left} sticks`,
    move(player, text) {
      const taken = Number(text);
      if (!(taken >= 1 && taken <= 3 && taken <= left)) return false;
      left -= taken;
      if (left === 0) winner = player;
      turn = (turn + 1) % players;
      return true;
    },
    rewards: () => Array.from({ length: players }, (_, seat) => (seat === winner ? 1 : 0)),
    metrics: () => ({ sticks_left: left }),
  };
}

const renderer = talkRenderer();

/** A policy that answers with a function of its last message. */
const talker =
  (answer: (received: string) => string | Promise<string>): Policy =>
  async ({ input, signal }) => {
    signal?.throwIfAborted();
    const lines = renderer.spell(input.toInts()).split("\n");
    const text = await answer(lines.at(-2)!.replace(/^user: /, ""));
    const tokens = renderer.tokens(`${text}\n`);
    return { tokens, logprobs: new Float32Array(tokens.length), stopReason: "stop" };
  };

describe("a game of several players", () => {
  it.each([2, 3])(
    "gives each of %s players an episode with its turns and its reward",
    async (n) => {
      const group = await rolloutGroup(
        talker(() => "1"),
        gameGroup({ renderer, game: () => sticks(7, n), games: 2 }),
      );
      expect(group.trajectories).toHaveLength(2 * n);
      const turns = group.trajectories.slice(0, n).map(({ transitions }) => transitions.length);
      expect(turns).toEqual(n === 2 ? [4, 3] : [3, 2, 2]);
      const wins = n === 2 ? [1, 0] : [1, 0, 0];
      expect(totalRewards(group)).toEqual([...wins, ...wins]);
      expect(group.trajectories.every(({ stopReason }) => stopReason === "completed")).toBe(true);
      const prompt = group.trajectories[1]!.transitions[1]!.observation;
      expect(renderer.spell(prompt.toInts())).toBe(
        `user: 6 sticks\nassistant: 1\nuser: ${n === 2 ? 4 : 3} sticks\nassistant: `,
      );
    },
  );

  it("an illegal move ends it: the mover gets a penalty, the other its value", async () => {
    const group = await rolloutGroup(
      talker((received) => (received === "3 sticks" ? "9" : "1")),
      gameGroup({ renderer, game: () => sticks(4) }),
    );
    expect(totalRewards(group)).toEqual([0, -2]);
    expect(group.trajectories.map(({ stopReason }) => stopReason)).toEqual([
      "game_abandoned",
      "illegal_move",
    ]);
  });

  it("a player who never had a move has an episode without turns", async () => {
    const group = await rolloutGroup(
      talker(() => "2"),
      gameGroup({ renderer, game: () => sticks(2) }),
    );
    expect(totalRewards(group)).toEqual([1, 0]);
    expect(group.trajectories[1]).toMatchObject({ stopReason: "completed" });
    expect(group.trajectories[1]!.transitions[0]!.action.tokens).toHaveLength(0);
  });

  it("plays against untrained opponents, once per turn for any number of waiting players", async () => {
    const asked: string[] = [];
    const group = await rolloutGroup(
      talker(() => "1"),
      gameGroup({
        renderer,
        game: () => sticks(8, 3),
        opponent: (seat) =>
          seat === 1
            ? (received) => {
                asked.push(textOf(received.at(-1)!));
                return "2";
              }
            : undefined,
      }),
    );
    expect(group.trajectories).toHaveLength(2);
    expect(asked).toEqual(["7 sticks", "3 sticks"]);
    expect(totalRewards(group)).toEqual([0, 1]);
  });

  it.each([
    ["the run fails", failFast],
    ["no player waits for ever", minViableGroup],
  ])("when one side fails, %s", async (_, tolerance) => {
    let fails = 0;
    const policy = talker((received) => {
      if (received === "3 sticks") throw new Error(`failure ${fails++}`);
      return "1";
    });
    const playing = rolloutGroup(policy, gameGroup({ renderer, game: () => sticks(4) }), {
      tolerance,
    });
    await expect(playing).rejects.toThrow(/An episode failed/);
    expect(fails).toBe(tolerance.maxRetries + 1);
  });

  it("when an opponent fails, the game fails", async () => {
    const playing = rolloutGroup(
      talker(() => "1"),
      gameGroup({
        renderer,
        game: () => sticks(4),
        opponent: (seat) => (seat === 1 ? () => Promise.reject(new Error("asleep")) : undefined),
      }),
      { tolerance: failFast },
    );
    await expect(playing).rejects.toThrow(/another player of the game failed/);
  });

  it("when a limit ends one side, the other side ends too", async () => {
    const group = await rolloutGroup(
      talker(() => "1"),
      gameGroup({ renderer, game: () => sticks(9) }),
      { limits: { maxTurns: 2 } },
    );
    expect(group.trajectories.map(({ stopReason }) => stopReason)).toEqual([
      "max_turns",
      "game_abandoned",
    ]);
  });

  it("needs a seat for the policy", () => {
    const group = gameGroup({ renderer, game: () => sticks(4), opponent: () => () => "1" });
    expect(() => group.environments()).toThrow(/opponent: leaves no seat/);
  });
});

describe("guess the number", () => {
  const play = (says: readonly string[], maxGuesses = 3) => {
    let turn = 0;
    const conversation = guessNumber({ number: 6, to: 10, maxGuesses });
    return rollout(
      talker(() => says[turn++]!),
      messageEnvironment(conversation, { renderer }),
    );
  };

  it("answers low or high until the number is found", async () => {
    const { transitions, stopReason } = await play(["5", "It is 8", "6"]);
    expect(stopReason).toBe("completed");
    expect(transitions.map(({ reward }) => reward)).toEqual([0, 0, 1]);
    expect(transitions[2]!.metrics).toMatchObject({ found: 1, guesses: 3 });
    expect(renderer.spell(transitions[2]!.observation.toInts())).toMatch(
      /user: Too low\.\n.*user: Too high\.\n/s,
    );
  });

  it("ends when there are no guesses left, and when there is no number in one", async () => {
    expect(await play(["1", "2", "3"])).toMatchObject({ stopReason: "max_turns" });
    const { transitions, stopReason } = await play(["hm"]);
    expect([stopReason, transitions[0]!.reward]).toEqual(["no_guess", -1]);
  });
});

describe("twenty questions", () => {
  it("is answered by another model, which reads a single question", async () => {
    const received: string[] = [];
    const other = talker((last) => {
      received.push(last);
      return "yes";
    });
    const answerer = modelAnswerer(messageCompleter(other, { renderer }), "fox");
    const says = ["Is it red?", "Does it fly?", "Is it a Fox?"];
    let turn = 0;
    const { transitions, stopReason } = await rollout(
      talker(() => says[turn++]!),
      messageEnvironment(twentyQuestions({ word: "fox", answerer }), { renderer }),
    );
    expect(received).toEqual(says.slice(0, 2));
    expect([stopReason, transitions.at(-1)!.reward]).toEqual(["completed", 1]);
    const out = await rollout(
      talker(() => "Is it a dog?"),
      messageEnvironment(twentyQuestions({ word: "fox", answerer, maxQuestions: 2 }), { renderer }),
    );
    expect(out).toMatchObject({ stopReason: "max_turns", transitions: [{}, { reward: 0 }] });
  });
});

it("a completer returns the termination of an answer, and its unparsed calls", async () => {
  const complete = messageCompleter(
    talker(() => "hello"),
    { renderer },
  );
  const completion = await complete([{ role: "user", content: "hi" }]);
  expect(completion).toMatchObject({
    message: { role: "assistant", content: "hello" },
    termination: "stop_sequence",
    action: { stopReason: "stop" },
  });
});
