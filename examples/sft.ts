// Fine-tunes a model on a file of conversations: reading, rendering, training, evaluating, saving.
import assert from "node:assert/strict";
import { train } from "@tinker-ts/cookbook/supervised";
import { consoleSink } from "tinker-ts/run-log";
import { connect } from "./support/connect.js";
import { gardenFiles } from "./support/garden-files.js";

const { service, baseModel: model } = await connect(); // this process, or the server that is configured
const { folder, lessons, exam } = await gardenFiles(1200); // a JSONL file with a conversation per line

const { checkpoint, evaluation } = await train({
  service,
  model,
  data: lessons,
  evalData: exam,
  batchSize: 32,
  learningRate: "auto",
  folder: `${folder}/run`,
  sinks: [consoleSink()],
});
await service.close();

console.log(`Saved ${checkpoint?.samplerPath}; the run's files are in ${folder}/run.`);
assert.ok(evaluation["test/nll"]! < 0.5, "the model has learned what it had no way to know");
