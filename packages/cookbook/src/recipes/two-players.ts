import { seededRandom } from "../data/index.js";
import { gameGroup, type EnvironmentGroup, type Game } from "../rl/index.js";
import type { Message } from "../renderers/index.js";
import { learnByRewards } from "./by-rewards.js";
import { examSize, percent } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";

const most = 7;

/** Nim: who takes the last stick wins. */
export const recipe: Recipe = {
  name: "two-players",
  summary: "Learns a game of two by playing against itself",
  teaches:
    "Self-play: both players are the model, each has an episode of its own, and they wait for each other. A game has a " +
    "winner and a loser, so there is always something to learn. What was learned is measured against a player who moves at random.",
  async run(context) {
    const { before, after, samplerPath } = await learnByRewards(context, {
      name: "two-players",
      examples: { conversations: randomGames(context.seed, 512), steps: 50 },
      steps: 20,
      batch: () => selfPlay(context),
      exam: () => againstChance(context, examSize(context, 100)),
      maxTokens: 4,
      learningRate: 1.5e-3,
      onBefore: (exam) => context.say(`Against chance it wins ${percent(exam.rate("won"))}.`),
    });
    return {
      samplerPath,
      checks: [
        { what: "won against chance before", value: before.rate("won") },
        { what: "won against chance after", value: after.rate("won"), atLeast: 0.75 },
      ],
    };
  },
};

const prompt = (left: number): string => `${left} sticks. How many do you take?`;

/** Each takes one or two sticks in turn; the player who takes the last one wins. `seat` is the reported winner. */
function nim(sticks: number, seat?: number): Game {
  let left = sticks;
  let turn = 0;
  let winner: number | undefined;
  return {
    players: 2,
    get turn() {
      return winner === undefined ? turn : undefined;
    },
    observe: () => prompt(left),
    move(player, text) {
      const taken = /^[12]$/.test(text) ? Number(text) : 0;
      if (taken === 0 || taken > left) return false;
      left -= taken;
      if (left === 0) winner = player;
      turn = 1 - turn;
      return true;
    },
    rewards: () =>
      winner === undefined ? [0, 0] : [0, 1].map((player) => (player === winner ? 1 : -1)),
    metrics: () => (seat === undefined ? {} : { won: Number(winner === seat) }),
  };
}

/** Several games from every number of sticks; those from one number are compared with each other. */
function selfPlay({ renderer }: RecipeContext): EnvironmentGroup[] {
  return Array.from({ length: most }, (_, index) =>
    gameGroup({ renderer, games: 6, game: () => nim(index + 1), illegalReward: -1 }),
  );
}

/** One game each against a player who takes what it likes; who begins changes. */
function againstChance({ renderer, seed }: RecipeContext, games: number): EnvironmentGroup[] {
  const random = seededRandom(seed, 13);
  return Array.from({ length: games }, (_, index) => {
    const own = index % 2;
    return gameGroup({
      renderer,
      game: () => nim(most, own),
      opponent: (seat) =>
        seat === own
          ? undefined
          : (messages) => String(1 + Math.floor(random() * Math.min(2, sticksIn(messages)))),
    });
  });
}

function sticksIn(messages: readonly Message[]): number {
  return Number.parseInt(messages.at(-1)!.content as string, 10);
}

/** Random moves that are allowed. */
function randomGames(seed: number, count: number): { messages: Message[] }[] {
  const random = seededRandom(seed, 17);
  return Array.from({ length: count }, (_, index) => {
    const messages: Message[] = [];
    let left = 1 + (index % most);
    const take = (): number => 1 + Math.floor(random() * Math.min(2, left));
    for (; left > 0; left -= left > 0 ? take() : 0) {
      const own = take();
      messages.push({ role: "user", content: prompt(left) });
      messages.push({ role: "assistant", content: String(own) });
      left -= own;
    }
    return { messages };
  });
}
