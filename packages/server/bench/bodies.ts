import { worstBodies } from "../test/support/worst-bodies.js";
import type { BenchModel } from "./bench-model.js";
import { withServer } from "./bench-server.js";
import { IdleLoop } from "./idle-loop.js";
import { line } from "./measure.js";

const delayLimitMs = 50;
/** Senders of each body at the same time. */
const senders = 2;
/** The delay is a percentile, which needs some time to be one. */
const leastMs = 4000;

/** How long others wait for the event loop while one key sends the worst bodies that it may send. */
export async function reportBodies(model: BenchModel): Promise<void> {
  await withServer(model, { limits: { maxPendingBytesPerModel: 64e9 } }, async (server) => {
    const training = await server
      .client()
      .createLoraTrainingClient({ baseModel: "bench", rank: 8 });
    const idleLoop = new IdleLoop();
    const bodies = await worstBodies(training.modelId, "bench");
    const look = () => server.metrics("tinker_event_loop_delay_p99_seconds");
    const delaysMs: number[] = [];
    for (const { name, path, bytes, headers } of bodies) {
      await look();
      await idleLoop.delayMs();
      const startedAt = performance.now();
      const statuses = new Set<number>();
      const send = async (): Promise<void> => {
        do {
          const response = await server.post(path, bytes, headers);
          statuses.add(response.status);
          await response.arrayBuffer();
        } while (performance.now() - startedAt < leastMs);
      };
      await Promise.all(Array.from({ length: senders }, send));
      const [delay = Number.NaN] = await look();
      const idleMs = await idleLoop.delayMs();
      // What holds up a loop without work holds up this one as well, and is not its doing.
      const ownMs = Math.max(0, delay * 1000 - idleMs);
      delaysMs.push(ownMs);
      const figure = `${ownMs.toFixed(1)} ms beyond the ${idleMs.toFixed(1)} ms of a loop without work`;
      line(`  ${name} (${[...statuses].join(", ")})`, figure, { is: ownMs, of: delayLimitMs });
    }
    await idleLoop.stop();
    const worstMs = Math.max(...delaysMs);
    line("event loop delay, p99, worst", `${worstMs.toFixed(1)} ms`, {
      is: worstMs,
      of: delayLimitMs,
    });
  });
}
