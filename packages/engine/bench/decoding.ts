import type { BaseModel, Engine, Snapshot } from "@tinker-ts/engine";
import { randomIntegers } from "./data.js";
import { readSpeed } from "./machine.js";
import { heading, line, percent } from "./measure.js";
import { createBenchModel, linearOperations } from "./models.js";
import { tokenMs } from "./token-time.js";

const promptTokens = 128;
const rank = 32;
const tokensPerSample = { S: 100, M: 15 } as const;
const requests = { S: 6, M: 3 } as const;

/** Tokens per second of decoding with an adapter after a prompt of 128 tokens. */
export async function benchDecoding(engine: Engine): Promise<void> {
  heading(`Decoding with an adapter of rank ${rank}, after ${promptTokens} tokens`);
  for (const name of ["S", "M"] as const) {
    const model = await createBenchModel(engine, name);
    const adapter = await model.createAdapter({ rank });
    const snapshot = await adapter.snapshot();
    for (const batch of [1, 8, 32]) {
      const readsAll = name === "M" && batch === 1;
      const readBefore = readsAll ? await readSpeed() : 0;
      const msPerStep = await stepTime(name, model, snapshot, batch);
      line(
        `${name}: batch ${batch}, tokens/s`,
        `${((batch * 1000) / msPerStep).toFixed(0)} (${msPerStep.toFixed(2)} ms a step)`,
      );
      if (readsAll) {
        // Every weight is read once per step: as many floats as half the operations of a token.
        const bytes = linearOperations(model.config) * 2;
        const plain = Math.max(readBefore, await readSpeed());
        const fraction = (bytes * 1000) / msPerStep / plain;
        line("plain reading just before and after", `${(plain / 1e9).toFixed(1)} GB/s`);
        line("M: batch 1, fraction of plain reading", percent(fraction), "goal: at least 60 %");
      }
    }
    await model.unload();
  }
}

/** Milliseconds per decoding step, the best of a few requests. */
async function stepTime(
  name: keyof typeof requests,
  model: BaseModel,
  adapter: Snapshot,
  batch: number,
): Promise<number> {
  const random = randomIntegers(batch);
  const prompt = Int32Array.from({ length: promptTokens }, () => random(model.vocabSize));
  const request = { prompt, numSamples: batch, adapter, seed: 1 };
  let best = Infinity;
  for (let round = 0; round < requests[name]; round++) {
    best = Math.min(best, await tokenMs(model, request, tokensPerSample[name]));
  }
  return best;
}
