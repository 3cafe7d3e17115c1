// Reinforcement learning: nobody shows the model an answer, a program only tells good from bad. Here it
// likes to hear of weather in which one can fly a kite.
//
// Every question is answered several times. Answers that are better than the average of their group
// become more probable, worse ones less; what was sampled with is compared with what is trained now
// (importance sampling).
import assert from "node:assert/strict";
import { policyDatum } from "tinker-ts";
import { RunLog } from "tinker-ts/run-log";
import { Chat } from "./support/chat.js";
import { connect } from "./support/connect.js";
import { percent } from "./support/display.js";
import { kiteWeather } from "./support/kite-weather.js";

const rounds = Number(process.env["REINFORCEMENT_ROUNDS"] ?? 40);
const questionsPerRound = 16;
const answersPerQuestion = 8;

const { service, baseModel, isSmall } = await connect();
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const chat = new Chat(await training.getTokenizer());
const riddles = kiteWeather();
const run = await RunLog.open({ service, name: "reinforcement" });
run.watch(training);
const shares: number[] = [];

for (let round = 1; round <= rounds; round++) {
  const sampling = await training.saveWeightsAndGetSamplingClient();
  const groups = await Promise.all(
    riddles.draw(questionsPerRound).map(async ({ question, reward }) => {
      const prompt = chat.prompt(question);
      const { sequences } = await sampling.sample({
        prompt,
        numSamples: answersPerQuestion,
        samplingParams: { maxTokens: 24, stop: [chat.turnEnd] },
      });
      const rewards = sequences.map(({ tokens }) => reward(chat.read(tokens)));
      return { prompt, sequences, rewards, average: mean(rewards) };
    }),
  );
  shares.push(mean(groups.map(({ average }) => average)));
  run.log({ "env/all/reward/total": shares.at(-1)! }, { step: round });
  const data = groups.flatMap(({ prompt, sequences, rewards, average }) =>
    sequences.flatMap((sequence, index) => {
      const advantage = rewards[index]! - average;
      return advantage === 0 ? [] : [policyDatum(prompt, sequence, advantage)];
    }),
  );
  if (data.length > 0) {
    const adamParams = { learningRate: isSmall ? 2e-3 : 4e-5 };
    await training.trainStep(data, "importance_sampling", { adamParams });
  }
  if (round % 5 === 0) console.log(`round ${round}: ${percent(shares.at(-1)!)} good`);
}
await run.close();
await service.close();

const [first, last] = [mean(shares.slice(0, 3)), mean(shares.slice(-3))];
console.log(`good at first: ${percent(first)}, good at last: ${percent(last)}`);
assert.ok(last >= 0.9, "at least nine of ten answers are good in the end");

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
