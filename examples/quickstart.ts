// Teaches a model something that it cannot know, and shows the difference. `npm start` runs this.
import assert from "node:assert/strict";
import { RunLog } from "tinker-ts/run-log";
import { Chat } from "./support/chat.js";
import { connect } from "./support/connect.js";
import { accuracy, Display, percent } from "./support/display.js";
import { gardenTalk } from "./support/garden-talk.js";

const steps = 110;
const batchSize = 32;
const rank = 32;

const { service, baseModel, isHere, isSmall } = await connect(); // this process, or the server that is configured
const learningRate = isSmall ? 5e-3 : 4e-4; // small models learn with larger steps
const task = gardenTalk();
const questions = task.exam.map(({ question }) => question);

const display = new Display();
display.title(`${task.title}: ${task.description}.`);
display.say(
  `This asks ${baseModel} ${questions.length} questions, trains an adapter for it on others,`,
);
display.say("saves the adapter, and asks again. It takes less than a minute.");

display.title("1. The base model");
const training = await service.createLoraTrainingClient({ baseModel, rank, seed: 1 });
const chat = new Chat(await training.getTokenizer());
const before = await chat.ask(await service.createSamplingClient({ baseModel }), questions);
display.say(`right: ${percent(accuracy(task.exam, before))}`);

display.title(`2. Training: ${steps} steps of ${batchSize} examples, rank ${rank}`);
const config = { model_name: baseModel, learning_rate: learningRate, lora_rank: rank };
const run = await RunLog.open({ service, name: "quickstart", config }); // for `tinker-ts studio`
run.watch(training);
const losses: number[] = [];
for (let step = 1; step <= steps; step++) {
  const { data, tokenCount } = chat.lesson(task.lesson(batchSize));
  const adamParams = { learningRate: learningRate * (1 - (step - 1) / steps) };
  const { forwardBackward } = await training.trainStep(data, "cross_entropy", { adamParams });
  losses.push(forwardBackward.metrics["loss:sum"]! / tokenCount);
  run.log({ train_mean_nll: losses.at(-1)!, learning_rate: adamParams.learningRate }, { step });
  display.step(step, steps, losses.at(-1)!);
}
await run.close();
display.curve();

display.title("3. The trained model, from its checkpoint");
const { path } = await training.saveWeightsForSampler("quickstart");
const after = await chat.ask(await service.createSamplingClient({ modelPath: path }), questions);
display.compare(task.exam, before, after);
display.say(`right before: ${percent(accuracy(task.exam, before))}`);
display.say(`right now:    ${percent(accuracy(task.exam, after))}`);
await service.close();

const where = isHere ? " --base-url local:" : "";
display.title(`Done in ${display.seconds}. What next:`);
display.say("npx tinker-ts studio");
display.say(`npx tinker-ts chat --model ${path}${where}`);
display.say(`npx tinker-ts checkpoint list${where}`);
display.say("npx tinker-ts serve");

assert.ok(losses.at(-1)! < losses[0]! / 2, "the loss has fallen to less than half");
// Elsewhere the model, its precision and its rules are not ours: there it must have learned, here well.
const wanted = isHere ? 0.9 : accuracy(task.exam, before) + 0.25;
assert.ok(
  accuracy(task.exam, after) >= wanted,
  `at least ${percent(wanted)} of the answers are right now`,
);
