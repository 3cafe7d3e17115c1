// Started by gpu.test.ts: checks the GPU, with the cures that are named left out; prints what came of each.
import { gpuDevice } from "../../dist/execution/device.js";
import { checkDevice } from "../../dist/runtime/self-check.js";

const outcomes = [];
for (const leftOut of process.argv.slice(2)) {
  const device = gpuDevice([leftOut]);
  try {
    const { parts } = await checkDevice({ threads: 2, device });
    outcomes.push({ leftOut, parts });
  } catch (error) {
    outcomes.push({ leftOut, code: error.code, message: error.message });
  }
}
console.log(JSON.stringify(outcomes));
