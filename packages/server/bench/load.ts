import type { BenchModel } from "./bench-model.js";
import { withServer } from "./bench-server.js";
import { IdleLoop } from "./idle-loop.js";
import { line, median } from "./measure.js";

const sampleCount = 2000;
const sessionCount = 200;
const rounds = 3;
const delayLimitMs = 50;
const growthLimit = 1.25;

/** Many samples at once while many sessions do nothing but live. */
export async function reportLoad(model: BenchModel): Promise<void> {
  await withServer(model, {}, async (server) => {
    const idle = Array.from({ length: sessionCount }, () => server.client());
    await Promise.all(idle.map((client) => client.createSamplingClient({ baseModel: "bench" })));
    const sampler = await server.client().createSamplingClient({ baseModel: "bench" });
    const sample = (seed: number) =>
      sampler.sample({
        prompt: [1, 2, 3, seed % model.vocabSize],
        samplingParams: { maxTokens: 8, seed },
      });
    await sample(0);
    const idleLoop = new IdleLoop();
    const look = () =>
      server.metrics("tinker_event_loop_delay_p99_seconds", "tinker_resident_bytes");
    await look();
    await idleLoop.delayMs();
    const seconds: number[] = [];
    const delaysMs: number[] = [];
    const idleDelaysMs: number[] = [];
    const megabytes: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const startedAt = performance.now();
      const seeds = Array.from({ length: sampleCount }, (_, i) => round * sampleCount + i);
      const answers = await Promise.all(seeds.map((seed) => sample(seed)));
      seconds.push((performance.now() - startedAt) / 1000);
      if (answers.some(({ sequences }) => sequences.length !== 1)) throw new Error("incomplete");
      const [delay = Number.NaN, resident = Number.NaN] = await look();
      delaysMs.push(delay * 1000);
      idleDelaysMs.push(await idleLoop.delayMs());
      megabytes.push(resident / 1e6);
    }
    await idleLoop.stop();
    const perSecond = sampleCount / median(seconds);
    const delayMs = median(delaysMs);
    const growth = megabytes.at(-1)! / megabytes[0]!;
    line(`${sampleCount} samples at once`, `all answered, ${perSecond.toFixed(0)} per second`);
    line("  beside them", `${sessionCount} sessions without work`);
    const idleMs = median(idleDelaysMs);
    const figure = `${delayMs.toFixed(1)} ms; ${idleMs.toFixed(1)} ms in a loop without work`;
    line("  event loop delay, p99", figure, { is: delayMs, of: delayLimitMs });
    line("  memory after each round", `${megabytes.map((size) => size.toFixed(0)).join(", ")} MB`, {
      is: growth,
      of: growthLimit,
    });
  });
}
