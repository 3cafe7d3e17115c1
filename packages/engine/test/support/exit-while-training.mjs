// Started by engine.test.ts: leaves with code 3 in the middle of a training call.
import { Engine } from "@tinker-ts/engine";

const [folder = ""] = process.argv.slice(2);
const engine = await Engine.create();
const model = await engine.loadModel(folder);
const adapter = await model.createAdapter({ rank: 8 });
const shape = [500];
const datum = {
  tokens: new Int32Array(500),
  inputs: {
    target_tokens: { data: new Int32Array(500), shape },
    weights: { data: new Float32Array(500).fill(1), shape },
  },
};
const data = Array.from({ length: 400 }, () => datum);
await adapter.forwardBackward(data, {
  lossFn: "cross_entropy",
  onProgress: () => process.exit(3),
});
