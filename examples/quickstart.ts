// Teaches a model something that it cannot know, and shows the difference. `npm start` runs this.
import { Chat } from "./support/chat.js";
import { connect } from "./support/connect.js";
import { accuracy, Display, percent } from "./support/display.js";
import { gardenTalk } from "./support/garden-talk.js";

const steps = Number(process.env["QUICKSTART_STEPS"] ?? 140);
const batchSize = 32;
const rank = 32;

const { service, baseModel, isHere } = connect();
const learningRate = isHere ? 5e-3 : 4e-4; // small models learn with larger steps
const task = gardenTalk();
const questions = task.exam.map(({ question }) => question);
const display = new Display();
display.say(`${task.title}: ${task.description}.`);
display.say(`An adapter of rank ${rank} for ${baseModel} learns it in ${steps} steps.`);

const training = await service.createLoraTrainingClient({ baseModel, rank, seed: 1 });
const chat = new Chat(await training.getTokenizer());

display.title(`1. Ask the base model ${questions.length} questions that are not in its lessons`);
const before = await chat.ask(await service.createSamplingClient({ baseModel }), questions);
display.say(`  right: ${percent(accuracy(task.exam, before))}`);

display.title(`2. Train on ${steps} lessons of ${batchSize} examples`);
for (let step = 1; step <= steps; step++) {
  const { data, tokenCount } = chat.lesson(task.lesson(batchSize));
  const adamParams = { learningRate: learningRate * (1 - (step - 1) / steps) };
  const { forwardBackward } = await training.trainStep(data, "cross_entropy", { adamParams });
  display.step(step, steps, forwardBackward.metrics["loss:sum"]! / tokenCount);
}
display.curve();

display.title("3. Save a checkpoint, sample from it, and ask the same questions");
const { path } = await training.saveWeightsForSampler("quickstart");
const trained = await service.createSamplingClient({ modelPath: path });
const after = await chat.ask(trained, questions);
display.compare(task.exam, before, after);
display.say(`  right before: ${percent(accuracy(task.exam, before))}`);
display.say(`  right now:    ${percent(accuracy(task.exam, after))}`);
await service.close();

display.title(`Done after ${display.seconds}. What next:`);
const where = isHere ? " --base-url local:" : "";
display.say(`  npx tinker-ts chat --model-path ${path}${where}`);
display.say(`  npx tinker-ts checkpoint list${where}`);
display.say("  npx tinker-ts serve");
