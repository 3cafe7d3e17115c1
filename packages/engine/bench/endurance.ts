import type { Engine } from "@tinker-ts/engine";
import { randomDatum, randomIntegers } from "./data.js";
import { heading, line, megabytes } from "./measure.js";
import { createBenchModel } from "./models.js";

/** Memory over 200 steps of changing shapes, with sampling in between. */
export async function benchEndurance(engine: Engine): Promise<void> {
  heading("200 steps of changing lengths on S, with sampling every tenth");
  const model = await createBenchModel(engine, "S");
  const adapter = await model.createAdapter({ rank: 32 });
  const random = randomIntegers(3);
  const seen: number[] = [];
  for (let step = 1; step <= 200; step++) {
    const data = Array.from({ length: 2 + random(6) }, (_, i) =>
      randomDatum(model.vocabSize, 16 + random(240), 0, step * 10 + i),
    );
    await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
    await adapter.optimStep({ learningRate: 1e-5 });
    if (step % 10 === 0) {
      const snapshot = await adapter.snapshot();
      await model.sample({ prompt: [1, 2, 3], maxTokens: 8, numSamples: 4, adapter: snapshot });
      await snapshot.release();
    }
    if (step % 50 === 0) {
      const { rss } = process.memoryUsage();
      seen.push(rss);
      line(`after ${step} steps`, megabytes(rss));
    }
  }
  const [first = 0] = seen;
  line("growth from step 50 to 200", megabytes((seen.at(-1) ?? 0) - first), "goal: flat");
  await model.unload();
}
