import type { DatumLike } from "tinker-ts";
import type { BenchModel } from "./bench-model.js";
import { withServer } from "./bench-server.js";
import { line, median, timed } from "./measure.js";

const modelCount = 500;
const rounds = 15;
const waitLimit = 3;
const keys = { many: "tml-bench-many", one: "tml-bench-one" };

/** How long a step of one owner takes while another one trains hundreds of models, and while nobody does. */
export async function reportOwners(model: BenchModel): Promise<void> {
  const apiKeys = [
    { key: "tml-bench-key", owner: "bench" },
    { key: keys.many, owner: "many" },
    { key: keys.one, owner: "one" },
  ];
  await withServer(model, { apiKeys, threads: 1 }, async (server) => {
    const row = Int32Array.from({ length: 64 }, (_, i) => (i * 7) % model.vocabSize);
    const weights = new Float32Array(64).fill(1);
    const datum = { modelInput: row, lossFnInputs: { target_tokens: row, weights } };
    const data: DatumLike[] = Array.from({ length: 4 }, () => datum);
    const options = { baseModel: "bench", rank: 8 };
    const one = await server.client(keys.one).createLoraTrainingClient(options);
    const step = async (): Promise<void> => {
      await one.forwardBackward(data, "cross_entropy");
    };
    for (let i = 0; i < 5; i++) await step();
    const alone: number[] = [];
    for (let round = 0; round < rounds; round++) alone.push(await timed(step));

    const crowd = server.client(keys.many);
    const models = await Promise.all(
      Array.from({ length: modelCount }, () => crowd.createLoraTrainingClient(options)),
    );
    const [, residentBytes = Number.NaN] = await server.metrics(
      "tinker_live_models",
      "tinker_resident_bytes",
    );
    const over = new AbortController();
    const busy = models.map(async (training) => {
      while (!over.signal.aborted) {
        await training.forwardBackward(data, "cross_entropy");
      }
    });
    // All of them are in line before the first look.
    await step();
    const beside: number[] = [];
    for (let round = 0; round < rounds; round++) beside.push(await timed(step));
    const [live = Number.NaN] = await server.metrics("tinker_live_models");
    over.abort();
    await Promise.all(busy);
    const [ownMs, takesMs] = [median(alone), median(beside)];
    const waitsMs = takesMs - ownMs;
    line(
      `a step beside ${modelCount} models`,
      `waits ${waitsMs.toFixed(1)} ms; its own work is ${ownMs.toFixed(1)} ms`,
      { is: waitsMs, of: waitLimit * ownMs },
    );
    line("  models in memory", `${live}; ${(residentBytes / 1e6).toFixed(0)} MB resident`);
  });
}
