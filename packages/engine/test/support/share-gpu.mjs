// Started by gpu.test.ts: uses the GPU with one engine after another, also after its driver has failed, and prints
// what each came to. The first argument says where the driver can be broken.
import { closeSync, openSync, writeSync } from "node:fs";
import { Engine } from "@tinker-ts/engine";
import { checkedConfig } from "../../dist/gpu/self-check.js";

const faults = JSON.parse(process.argv[2]);
const outcomes = {};

let engine = await start("first");
await start("second");
let training = await begin(engine);
outcomes.calm = await step(training);
setFault(faults.outOfMemory, true);
outcomes.outOfMemory = await step(await begin(engine, 100));
setFault(faults.outOfMemory, false);
setFault(faults.lost, true);
outcomes.lost = await step(training);
await engine.close();
await start("whileLost");
setFault(faults.lost, false);
engine = await start("afterwards");
training = await begin(engine);
outcomes.again = await step(training);
await engine.close();
console.log(JSON.stringify(outcomes));

async function start(name) {
  try {
    const made = await Engine.create({ device: "gpu", threads: 2 });
    outcomes[name] = { name: made.device.name };
    return made;
  } catch (error) {
    outcomes[name] = { code: error.code, message: error.message };
    return undefined;
  }
}

/** A new model, and sequences of a length to train it with. */
async function begin(using, length = 40) {
  const model = await using.createModel(checkedConfig, { seed: 1 });
  const adapter = await model.createAdapter({ rank: 8, seed: 1 });
  const tokens = Array.from({ length }, (_, index) => index % checkedConfig.vocabSize);
  const inputs = { target_tokens: { data: tokens, shape: [length] } };
  return { adapter, data: [{ tokens, inputs }] };
}

async function step({ adapter, data }) {
  try {
    const { metrics } = await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
    return { loss: metrics["loss:sum"] };
  } catch (error) {
    return { code: error.code, message: error.message };
  }
}

function setFault({ file, offset, sound, broken }, isBroken) {
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.from(isBroken ? broken : sound, "hex"), 0, null, offset);
  closeSync(descriptor);
}
