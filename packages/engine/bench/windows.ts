import type { BaseModel, Engine } from "@tinker-ts/engine";
import { randomDatum } from "./data.js";
import { heading, line } from "./measure.js";
import { benchModels, createBenchModel } from "./models.js";

const tokens = 4096;
const window = 512;
const rounds = 3;
const { layers } = benchModels.S;
const kind = { window, rotation: "rope" } as const;
const windowed = { layerKinds: Array.from({ length: layers }, () => kind) };

/** What a window spares on S: a step on a long datum, and tokens after as long a prompt. */
export async function benchWindows(engine: Engine): Promise<void> {
  heading(`A window of ${window} in all layers of S against none, ${tokens} tokens`);
  const models = [
    await createBenchModel(engine, "S"),
    await createBenchModel(engine, "S", windowed),
  ];
  for (const [label, measure] of [
    ["step", stepMs],
    ["token", tokenMs],
  ] as const) {
    // Taking turns: others share the cores.
    const best = models.map(() => Infinity);
    for (let round = 0; round < rounds; round++) {
      for (const [index, model] of models.entries()) {
        best[index] = Math.min(best[index] ?? Infinity, await measure(model));
      }
    }
    const [whole = NaN, narrow = NaN] = best;
    const times = `${narrow.toFixed(1)} against ${whole.toFixed(1)} ms`;
    line(`${label}: ${times}`, `${(whole / narrow).toFixed(2)} x`);
  }
  for (const model of models) await model.unload();
}

async function stepMs(model: BaseModel): Promise<number> {
  const adapter = await model.createAdapter({ rank: 32 });
  const datum = randomDatum(model.vocabSize, tokens, 0, 1);
  const startMs = performance.now();
  await adapter.forwardBackward([datum], { lossFn: "cross_entropy" });
  const spentMs = performance.now() - startMs;
  await adapter.release();
  return spentMs;
}

async function tokenMs(model: BaseModel): Promise<number> {
  const prompt = randomDatum(model.vocabSize, tokens, 0, 1).tokens;
  const timesMs: number[] = [];
  await model.sample({ prompt, maxTokens: 40, onToken: () => timesMs.push(performance.now()) });
  const settled = timesMs.slice(3);
  return ((settled.at(-1) ?? NaN) - (settled[0] ?? NaN)) / (settled.length - 1);
}
