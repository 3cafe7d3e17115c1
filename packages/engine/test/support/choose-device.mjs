// Started by gpu.test.ts: makes engines on the named devices, all of them open at once, and prints what
// they compute on or why they could not be made.
import { Engine } from "@tinker-ts/engine";

const outcomes = [];
const engines = [];
for (const device of process.argv.slice(2)) {
  if (device === "close") {
    await Promise.all(engines.splice(0).map((engine) => engine.close()));
    continue;
  }
  try {
    const engine = await Engine.create({ device, threads: 2 });
    engines.push(engine);
    outcomes.push({ name: engine.device.name, message: engine.device.reason });
  } catch (error) {
    outcomes.push({ code: error.code, message: error.message });
  }
}
await Promise.all(engines.map((engine) => engine.close()));
console.log(JSON.stringify(outcomes));
