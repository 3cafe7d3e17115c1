import type { BaseModel, Datum, Sample } from "@tinker-ts/engine";
import type { Riddle } from "../../../examples/support/kite-weather.js";
import type { Conversation } from "../src/conversation.js";

/** What reinforcement learning made of a model. */
export interface Improved {
  /** Mean reward at temperature 1 before training, and of the last rounds. */
  readonly before: number;
  readonly after: number;
  readonly rounds: number;
  readonly elapsedMs: number;
}

/** How reinforcement learning goes. */
export interface RewardRecipe {
  readonly rounds: number;
  /** Per round. */
  readonly questions: number;
  readonly learningRate: number;
}

const rank = 16;
/** Per question. */
const answers = 8;

/** Rounds at the end whose mean counts. */
const counted = 3;

interface Group {
  readonly prompt: Int32Array;
  readonly samples: readonly Sample[];
  readonly rewards: readonly number[];
}

/**
 * Improves answers by their rewards alone: of several answers to a question, those that are better than
 * the average become more probable.
 */
export async function learnByReward(
  model: BaseModel,
  conversation: Conversation,
  riddles: { readonly draw: (count: number) => Riddle[] },
  { rounds, questions, learningRate }: RewardRecipe,
  seed: number,
): Promise<Improved> {
  await using adapter = await model.createAdapter({ rank, seed });
  const before = await rewardOf(conversation, riddles.draw(64));
  const rates: number[] = [];
  const startMs = performance.now();
  for (let round = 0; round < rounds; round++) {
    await using snapshot = await adapter.snapshot();
    const groups = await Promise.all(
      riddles
        .draw(questions)
        .map((riddle, index) =>
          answer(conversation, riddle, { adapter: snapshot, seed: 1000 * round + index }),
        ),
    );
    rates.push(mean(groups.map(({ rewards }) => mean(rewards))));
    const data = groups.flatMap(toData);
    if (data.length === 0) continue;
    const pass = adapter.forwardBackward(data, { lossFn: "importance_sampling" });
    await Promise.all([pass, adapter.optimStep({ learningRate })]);
  }
  return {
    before,
    after: mean(rates.slice(-counted)),
    rounds,
    elapsedMs: performance.now() - startMs,
  };
}

/** Of answers to riddles at temperature 1, the mean reward. */
export async function rewardOf(
  conversation: Conversation,
  riddles: readonly Riddle[],
): Promise<number> {
  const groups = await Promise.all(
    riddles.map((riddle, seed) => answer(conversation, riddle, { seed })),
  );
  return mean(groups.map(({ rewards }) => mean(rewards)));
}

async function answer(
  conversation: Conversation,
  { question, reward }: Riddle,
  options: Parameters<Conversation["ask"]>[1],
): Promise<Group> {
  const samples = await conversation.ask(question, {
    temperature: 1,
    numSamples: answers,
    maxTokens: 24,
    ...options,
  });
  return {
    prompt: await conversation.prompt(question),
    samples,
    rewards: samples.map(({ tokens }) => reward(conversation.read(tokens))),
  };
}

/** Answers that are as good as the average of their group teach nothing. */
function toData({ prompt, samples, rewards }: Group): Datum[] {
  const average = mean(rewards);
  return samples.flatMap((sample, index) => {
    const advantage = (rewards[index] ?? 0) - average;
    return advantage === 0 ? [] : [toDatum(prompt, sample, advantage)];
  });
}

function toDatum(prompt: Int32Array, { tokens, logprobs }: Sample, advantage: number): Datum {
  const all = Int32Array.of(...prompt, ...tokens);
  const shape = [all.length - 1];
  const sampled = new Float32Array(all.length - 1);
  sampled.set(logprobs, prompt.length - 1);
  return {
    tokens: all.subarray(0, -1),
    inputs: {
      target_tokens: { data: all.subarray(1), shape },
      logprobs: { data: sampled, shape },
      advantages: {
        data: new Float32Array(all.length - 1).fill(advantage, prompt.length - 1),
        shape,
      },
    },
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
