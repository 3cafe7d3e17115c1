// Started by processes.ts in a process of its own, so that its memory is its own.
import { Engine, type PrecisionOptions } from "@tinker-ts/engine";
import { randomDatum } from "./data.js";
import { benchModels, type BenchModelName } from "./models.js";

const [name = "S", kind = "both", given = "{}"] = process.argv.slice(2);
const options = JSON.parse(given) as PrecisionOptions;
const peakBytes = (): number => process.resourceUsage().maxRSS * 1024;

const engine = await Engine.create();
// Weights are drawn one tensor at a time, as they would be read.
const model = await engine.createModel(benchModels[name as BenchModelName], {
  seed: 1,
  ...options,
});
const adapter = await model.createAdapter({ rank: 32 });
if (kind === "both") {
  const data = [1, 2, 3, 4].map((seed) => randomDatum(model.vocabSize, 256, 0, seed));
  await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
  await adapter.optimStep({ learningRate: 1e-5 });
}
const training = peakBytes();
await model.sample({
  adapter: await adapter.snapshot(),
  prompt: [1, 2, 3],
  maxTokens: 3,
  numSamples: 8,
});
console.log(JSON.stringify({ training, both: peakBytes() }));
await engine.close();
