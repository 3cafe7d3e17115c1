// Started by processes.ts in a process of its own, so that its memory is its own.
import { Engine } from "@tinker-ts/engine";
import { randomDatum } from "./data.js";
import { createBenchModel } from "./models.js";

const memoryBytes = 5 * 2 ** 30;
const engine = await Engine.create({ memoryBytes });
const model = await createBenchModel(engine, "M");
const adapter = await model.createAdapter({ rank: 32 });
const datum = randomDatum(model.vocabSize, 4096, 0, 1);
const startMs = performance.now();
await adapter.forwardBackward([datum], { lossFn: "cross_entropy" });
await adapter.optimStep({ learningRate: 1e-5 });
const ms = performance.now() - startMs;
console.log(JSON.stringify({ ms, peakBytes: process.resourceUsage().maxRSS * 1024 }));
await engine.close();
