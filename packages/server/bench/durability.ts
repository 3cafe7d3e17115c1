import type { BenchModel } from "./bench-model.js";
import { withServer } from "./bench-server.js";
import { line, median, timed } from "./measure.js";

const rounds = 200;

/** What surviving a power failure costs over surviving a crash. */
export async function reportDurability(model: BenchModel): Promise<void> {
  const stepMs = { process: 0, power: 0 };
  for (const durability of ["process", "power"] as const) {
    await withServer(model, { durability }, async (server) => {
      const training = await server
        .client()
        .createLoraTrainingClient({ baseModel: "bench", rank: 8 });
      const times: number[] = [];
      for (let round = 0; round < rounds; round++) {
        times.push(await timed(async () => training.optimStep({ learningRate: 0 })));
      }
      stepMs[durability] = median(times.slice(20));
    });
  }
  const ratio = (stepMs.power / stepMs.process).toFixed(2);
  line(
    "a step, process- and power-safe",
    `${stepMs.process.toFixed(2)} ms, ${stepMs.power.toFixed(2)} ms (${ratio} x)`,
  );
}
