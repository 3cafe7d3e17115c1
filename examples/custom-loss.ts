// Trains with a loss of one's own: answers must become probable, but not more than they need to be.
//
// The loss gets the logprobs of the answer and returns its value and its derivative by each of them.
// This one is a hinge: tokens that are more probable than a target are left alone.
import assert from "node:assert/strict";
import type { CustomLossFn } from "tinker-ts";
import { RunLog } from "tinker-ts/run-log";
import { Chat } from "./support/chat.js";
import { connect } from "./support/connect.js";
import { gardenTalk } from "./support/garden-talk.js";

const enough = Math.log(0.5);

const hinge: CustomLossFn = (data, logprobs) => {
  let loss = 0;
  let satisfied = 0;
  let total = 0;
  const gradients = logprobs.map((tensor, index) => {
    const weights = Array.from(data[index]!.lossFnInputs["weights"]!.data, Number);
    return Float32Array.from(tensor.data as Float32Array, (logprob, position) => {
      const weight = weights[position]!;
      total += weight;
      if (logprob >= enough) satisfied += weight;
      else loss += weight * (enough - logprob);
      return logprob >= enough ? 0 : -weight;
    });
  });
  return { loss, gradients, metrics: { "satisfied:mean": satisfied / total } };
};

const { service, baseModel } = await connect();
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const chat = new Chat(await training.getTokenizer());
const { data } = chat.lesson(gardenTalk().lesson(8));

const run = await RunLog.open({ service, name: "custom-loss" });
run.watch(training);
const shares: number[] = [];
for (let step = 1; step <= 30; step++) {
  const pass = training.forwardBackwardCustom(data, hinge);
  const { metrics } = await pass;
  await training.optimStep({ learningRate: 1e-2 });
  shares.push(metrics["satisfied:mean"]!);
  run.log({ satisfied: shares.at(-1)! }, { step });
  if (step % 10 === 0)
    console.log(`step ${step}: ${(shares.at(-1)! * 100).toFixed(0)} % satisfied`);
}
await run.close();
await service.close();

assert.ok(shares.at(-1)! > shares[0]! + 0.5, "at least half of the tokens became probable enough");
console.log("The loss of one's own did its work.");
