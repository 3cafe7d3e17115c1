// Started by processes.ts: everything from an empty process to a finished first step. Plain JavaScript,
// so that no compiler is part of the time.
import { Engine } from "@tinker-ts/engine";

const [idOrFolder = ""] = process.argv.slice(2);
const engine = await Engine.create();
const model = await engine.loadModel(idOrFolder);
const adapter = await model.createAdapter({ rank: 16 });
const shape = [64];
const datum = {
  tokens: Int32Array.from({ length: 64 }, (_, index) => index * 7),
  inputs: {
    target_tokens: { data: Int32Array.from({ length: 64 }, (_, index) => index * 7 + 7), shape },
    weights: { data: new Float32Array(64).fill(1), shape },
  },
};
await adapter.forwardBackward([datum, datum, datum, datum], { lossFn: "cross_entropy" });
await adapter.optimStep({ learningRate: 1e-4 });
await engine.close();
