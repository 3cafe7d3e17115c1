// Prints what the embedded model can do and what it can learn: `npm run bench -w tools/pretrain`.
// `-- FOLDER` tries the model of a folder instead.
import { embeddedModelId, Engine } from "@tinker-ts/engine";
import { gardenTalk } from "../../../examples/support/garden-talk.js";
import { kiteWeather } from "../../../examples/support/kite-weather.js";
import { Conversation } from "../src/conversation.js";
import { evaluateModel, printEvaluation } from "../src/evaluate.js";
import { carefulSums } from "./careful-sums.js";
import { learnByExample } from "./learn-by-example.js";
import { learnByReward } from "./learn-by-reward.js";

const seeds = [1, 2, 3];

/** Tasks with a reward. That of the weather is learned as in `examples/reinforcement.ts`. */
const rewarded = {
  "kite weather": {
    riddles: kiteWeather,
    recipe: { rounds: 40, questions: 16, learningRate: 2e-3 },
    seeds,
  },
  sums: {
    riddles: carefulSums,
    recipe: { rounds: 150, questions: 32, learningRate: 1e-3 },
    seeds: [1],
  },
};

const [location = embeddedModelId] = process.argv.slice(2);
await using engine = await Engine.create();
const model = await engine.loadModel(location);
const conversation = await Conversation.with(model);

heading(`${location} on held-out documents`);
printEvaluation(await evaluateModel(model));

heading("Learning by example: Garden Talk, right answers before -> after, time of training");
for (const seed of seeds) {
  const { before, after, trainingMs } = await learnByExample(
    model,
    conversation,
    gardenTalk(seed, 100),
    seed,
  );
  const goal = "goal: at most 10 % -> at least 90 % in 90 s";
  line(`seed ${seed}`, `${change(before, after)}, ${seconds(trainingMs)}`, goal);
}

heading("Learning by reward: good answers at temperature 1, before -> last rounds, time of all");
for (const [name, { riddles, recipe, seeds: own }] of Object.entries(rewarded)) {
  for (const seed of own) {
    const learned = await learnByReward(model, conversation, riddles(seed), recipe, seed);
    const { before, after, rounds, elapsedMs } = learned;
    const goal = "goal: 10 to 50 % -> at least 90 %";
    const result = `${change(before, after)}, ${seconds(elapsedMs)}`;
    line(`${name}, seed ${seed}, ${rounds} rounds`, result, goal);
  }
}

function change(before: number, after: number): string {
  return `${percent(before)} -> ${percent(after)}`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}

function percent(fraction: number): string {
  return `${(100 * fraction).toFixed(0)} %`;
}

function heading(text: string): void {
  console.log(`\n${text}`);
}

function line(label: string, figure: string, goal: string): void {
  console.log(`  ${label.padEnd(44)} ${figure.padStart(22)}  ${goal}`);
}
