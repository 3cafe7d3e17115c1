import type { BaseModel, Engine } from "@tinker-ts/engine";
import { randomIntegers } from "./data.js";
import type { MachineLimits } from "./machine.js";
import { heading, line, percent } from "./measure.js";
import { createBenchModel, linearOperations, type BenchModelName } from "./models.js";

const promptTokens = 128;
const rank = 32;

/** Tokens per second of decoding with an adapter after a prompt of 128 tokens. */
export async function benchDecoding(engine: Engine, limits: MachineLimits): Promise<void> {
  heading(`Decoding with an adapter of rank ${rank}, after ${promptTokens} tokens`);
  for (const name of ["S", "M"] as const) {
    const model = await createBenchModel(engine, name);
    const adapter = await model.createAdapter({ rank });
    const snapshot = await adapter.snapshot();
    for (const batch of [1, 8, 32]) {
      const msPerStep = await stepTime(name, model, snapshot, batch);
      line(
        `${name}: batch ${batch}, tokens/s`,
        `${((batch * 1000) / msPerStep).toFixed(0)} (${msPerStep.toFixed(2)} ms a step)`,
      );
      if (name === "M" && batch === 1) {
        // Every weight is read once per step: as many floats as half the operations of a token.
        const bytes = linearOperations(model.config) * 2;
        const fraction = (bytes * 1000) / msPerStep / limits.readBytesPerSecond;
        line("M: batch 1, fraction of plain reading", percent(fraction), "goal: at least 60 %");
      }
    }
    await model.unload();
  }
}

/** Milliseconds per decoding step: the time between tokens once all samples run. */
async function stepTime(
  name: BenchModelName,
  model: BaseModel,
  adapter: Awaited<ReturnType<Awaited<ReturnType<BaseModel["createAdapter"]>>["snapshot"]>>,
  batch: number,
): Promise<number> {
  const random = randomIntegers(batch);
  const prompt = Int32Array.from({ length: promptTokens }, () => random(model.vocabSize));
  const maxTokens = name === "S" ? 120 : 24;
  const timesMs: number[] = [];
  await model.sample({
    prompt,
    maxTokens,
    numSamples: batch,
    adapter,
    seed: 1,
    onToken: ({ sampleIndex }) => {
      if (sampleIndex === 0) timesMs.push(performance.now());
    },
  });
  const gaps = timesMs.slice(1).map((time, index) => time - (timesMs[index] ?? time));
  // The first steps make programs and buffers; the quickest tenth is least disturbed by others.
  const settled = gaps.slice(3).toSorted((a, b) => a - b);
  return settled[Math.floor(settled.length / 10)] ?? NaN;
}
