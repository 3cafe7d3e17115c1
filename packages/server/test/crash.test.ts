import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient } from "tinker-ts";
import { afterEach, expect, it } from "vitest";
import { FaultyProxy } from "./support/faulty-proxy.js";
import { randomBatch } from "./support/random-batch.js";
import { realModels, recurrentModels } from "./support/real-models.js";
import { savedStates } from "./support/saved-states.js";
import { seededRandom } from "./support/seeded-random.js";
import { ServerProcess } from "./support/server-process.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;
const steps = isFull ? 300 : 30;
const kills = isFull ? 100 : 3;

const cleanUps: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

/** Longest wait between two attempts; whatever is longer is a limit on something. */
const maxWaitMs = 10_000;

/** Waits between attempts, twenty times shorter: the faults are many and the test must be short. */
const hurriedClock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  schedule(durationMs: number, callback: () => void) {
    const timer = setTimeout(callback, durationMs > maxWaitMs ? durationMs : durationMs / 20);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

async function openServer(): Promise<{ server: ServerProcess; dataDir: string }> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-crash-"));
  const server = new ServerProcess({
    dataDir,
    models: { ...realModels, ...recurrentModels },
    logLevel: "error",
    // Small enough that states are written and journals cut all the time.
    limits: { maxJournalBytes: 20_000 },
  });
  await server.start();
  cleanUps.push(async () => {
    await server.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return { server, dataDir };
}

/** A run with everything in it: batches, steps, saves, loads, samples; returns all it was told. */
async function trainThroughout(baseUrl: string, baseModel: string): Promise<unknown[]> {
  const service = new ServiceClient({
    baseUrl,
    apiKey: "tml-crash-test",
    telemetry: false,
    clock: hurriedClock,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  cleanUps.push(() => service.close());
  const random = seededRandom(7);
  const told: unknown[] = [];
  const training = await service.createLoraTrainingClient({ baseModel, rank: 4, seed: 1 });
  let saved: string | undefined;
  for (let step = 0; step < steps; step++) {
    const pass = training.forwardBackward(randomBatch(random), "cross_entropy");
    const adam = training.optimStep({ learningRate: 0.01, weightDecay: 0.01 });
    told.push((await pass).metrics, (await adam).metrics);
    if (step % 10 === 4) saved = (await training.saveState(`step-${step}`)).path;
    if (step % 10 === 7) {
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const params = { maxTokens: 8, seed: step };
      const { sequences } = await sampler.sample({ prompt: [1, 2, 3], samplingParams: params });
      told.push([...sequences[0]!.tokens]);
    }
    if (step % 20 === 9 && saved) await training.loadStateWithOptimizer(saved);
  }
  await training.saveState("final");
  return told;
}

it.each(["qwen3", ...Object.keys(recurrentModels)].map((baseModel) => ({ baseModel })))(
  `comes out of ${kills} kills and a faulty network with the same bits as a calm run, training $baseModel`,
  async ({ baseModel }) => {
    const calm = await openServer();
    const expected = await trainThroughout(`http://127.0.0.1:${calm.server.port}`, baseModel);
    const expectedStates = savedStates(calm.dataDir);

    const stormy = await openServer();
    const random = seededRandom(Number(process.env["TINKER_TS_TEST_SEED"] ?? 42));
    const proxy = new FaultyProxy({
      faultRate: 0.3,
      random,
      targetPort: () => stormy.server.port,
    });
    const url = await proxy.start();
    cleanUps.push(() => proxy.stop());
    const done = new AbortController();
    const run = trainThroughout(url, baseModel).finally(() => done.abort());
    let killed = 0;
    const killing = (async () => {
      while (killed < kills && !done.signal.aborted) {
        // In the middle of what some request, which may be any of the next ones, has begun.
        await proxy.afterRequests(1 + Math.floor(random() * 12), done.signal);
        await stormy.server.kill();
        await stormy.server.start();
        killed++;
      }
    })();
    const [told] = await Promise.all([run, killing]);

    expect(killed).toBe(kills);
    expect(proxy.counts.size).toBe(9);
    expect(told).toEqual(expected);
    await stormy.server.restart();
    expect(savedStates(stormy.dataDir)).toEqual(expectedStates);
    expect(expectedStates.length).toBeGreaterThan(2);
  },
  isFull ? 1_800_000 : 120_000,
);
