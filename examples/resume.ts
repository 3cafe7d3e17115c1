// Trains, is killed in the middle, goes on from its checkpoint, and ends up where it would have been.
//
// The first process is ended with SIGKILL, which nothing can catch. The second one finds the checkpoint,
// takes weights and optimizer from it and finishes. A third, calm run shows that nothing was lost: its
// losses are the same to the last bit.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { Chat } from "./support/chat.js";
import { connect } from "./support/connect.js";
import { gardenTalk } from "./support/garden-talk.js";

const steps = 12;
const savedAt = 6;
const name = "resume";

if (process.argv[2] === "doomed") {
  await train({ until: steps, onStep: (step) => process.send?.(step) });
} else {
  const runId = await crash();
  const rest = await train({ until: steps, from: `tinker://${runId}/weights/${name}` });
  const calm = await train({ until: steps });
  assert.ok(calm.every(Number.isFinite), "every step has a loss");
  assert.deepEqual(rest, calm.slice(savedAt), "the resumed run has the losses of the calm one");
  console.log(`Resumed after step ${savedAt}: the other ${rest.length} losses are the same.`);
}

/** Starts a run in another process and kills it two steps after its checkpoint. */
async function crash(): Promise<string> {
  const child = fork(process.argv[1]!, ["doomed"]);
  const ended = once(child, "exit");
  const runId = await new Promise<string>((resolve, reject) => {
    let id = "";
    child.on("message", (message) => {
      if (typeof message === "string") id = message;
      else if (message === savedAt + 2) resolve(id);
    });
    child.on("exit", () => reject(new Error("the run ended before it could be killed")));
  });
  child.kill("SIGKILL");
  await ended;
  console.log(`Killed the run ${runId} in step ${savedAt + 3}.`);
  return runId;
}

/** Trains to the end, from the beginning or from a checkpoint, and returns the losses. */
async function train(plan: {
  readonly until: number;
  readonly from?: string;
  readonly onStep?: (step: number) => void;
}): Promise<number[]> {
  const { service, baseModel } = await connect();
  const training = plan.from
    ? await service.createTrainingClientFromStateWithOptimizer(plan.from)
    : await service.createLoraTrainingClient({ baseModel, rank: 8, seed: 3 });
  process.send?.(training.modelId);
  const chat = new Chat(await training.getTokenizer());
  const task = gardenTalk();
  const losses: number[] = [];
  for (let step = 1; step <= plan.until; step++) {
    const { data } = chat.lesson(task.lesson(8)); // drawn even for steps that are done: same data
    if (plan.from && step <= savedAt) continue;
    const adamParams = { learningRate: 1e-3 };
    const { forwardBackward } = await training.trainStep(data, "cross_entropy", { adamParams });
    losses.push(forwardBackward.metrics["loss:sum"]!);
    if (step === savedAt && !plan.from) await training.saveState(name, { overwrite: true });
    plan.onStep?.(step);
  }
  await service.close();
  return losses;
}
