// What the server costs on top of the engine, how it bears load, and how soon it is ready.
//   npm run bench -w packages/server
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { Engine } from "@tinker-ts/engine";
import { ServiceClient, type DatumLike } from "tinker-ts";
import type { StartServerOptions } from "../src/index.js";
import { realModels } from "../test/support/real-models.js";
import { ServerProcess } from "../test/support/server-process.js";

const apiKey = "tml-bench-key";

console.log(`load of the machine    ${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
await reportReadiness();
await reportOverhead();
await reportDurability();
await reportLoad({ samples: 2000, sessions: 200 });

/** From starting the process to its first answer. */
async function reportReadiness(): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    await withServer({}, async (_, { startMs }) => void times.push(startMs));
  }
  const startMs = median(times);
  console.log(
    `ready to serve         ${startMs.toFixed(0)} ms    ${ratio(startMs, 1500)} of the limit`,
  );
}

/** One pass and one step, by the engine alone and through client and server, turn by turn. */
async function reportOverhead(): Promise<void> {
  const rounds = 200;
  const tokens = (seed: number) => Int32Array.from({ length: 32 }, (_, i) => (i * 7 + seed) % 300);
  const rows = Array.from({ length: 4 }, (_, index) => tokens(index));
  const engine = await Engine.create({ threads: 1 });
  const base = await engine.loadModel(realModels.qwen3);
  const adapter = await base.createAdapter({ rank: 8 });
  const engineData = rows.map((row) => ({
    tokens: row,
    inputs: {
      target_tokens: { data: row, shape: [row.length] },
      weights: { data: new Float32Array(row.length).fill(1), shape: [row.length] },
    },
  }));
  const adam = { learningRate: 1e-4 };
  const data: DatumLike[] = rows.map((row) => ({
    modelInput: row,
    lossFnInputs: { target_tokens: row, weights: new Float32Array(row.length).fill(1) },
  }));
  await withServer({ threads: 1 }, async (url) => {
    const service = new ServiceClient({ baseUrl: url, apiKey, telemetry: false });
    const training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 8 });
    const alone = async (): Promise<void> => {
      await adapter.forwardBackward(engineData, { lossFn: "cross_entropy" });
      await adapter.optimStep(adam);
    };
    const served = async (): Promise<void> => {
      await training.forwardBackward(data, "cross_entropy");
      await training.optimStep(adam);
    };
    const times = { alone: [] as number[], served: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      times.alone.push(await timed(alone));
      times.served.push(await timed(served));
    }
    // Two operations per round; the first rounds compile and connect.
    const aloneMs = median(times.alone.slice(20)) / 2;
    const servedMs = median(times.served.slice(20)) / 2;
    const overheadMs = servedMs - aloneMs;
    console.log(`engine alone           ${aloneMs.toFixed(2)} ms per operation`);
    console.log(
      `client and server      ${servedMs.toFixed(2)} ms per operation, ${overheadMs.toFixed(2)} ms on top    ${ratio(overheadMs, 5)} of the limit`,
    );
    await service.close();
  });
  await engine.close();
}

/** What surviving a power failure costs over surviving a crash. */
async function reportDurability(): Promise<void> {
  const rounds = 300;
  const times: Record<string, number> = {};
  for (const durability of ["process", "power"] as const) {
    await withServer({ durability }, async (url) => {
      const service = new ServiceClient({ baseUrl: url, apiKey, telemetry: false });
      const training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 8 });
      const list: number[] = [];
      for (let round = 0; round < rounds; round++) {
        list.push(await timed(async () => void (await training.optimStep({ learningRate: 0 }))));
      }
      times[durability] = median(list.slice(20));
      await service.close();
    });
  }
  const { process: processMs = 0, power: powerMs = 0 } = times;
  console.log(
    `a step, process-safe   ${processMs.toFixed(2)} ms;  power-safe ${powerMs.toFixed(2)} ms    ${(powerMs / processMs).toFixed(2)} x`,
  );
}

/** Many samples at once while many sessions do nothing but live. */
async function reportLoad(load: { samples: number; sessions: number }): Promise<void> {
  await withServer({}, async (url) => {
    const idle = Array.from(
      { length: load.sessions },
      () => new ServiceClient({ baseUrl: url, apiKey, telemetry: false }),
    );
    await Promise.all(idle.map((client) => client.createSamplingClient({ baseModel: "qwen3" })));
    const service = new ServiceClient({ baseUrl: url, apiKey, telemetry: false });
    const sampling = await service.createSamplingClient({ baseModel: "qwen3" });
    const sample = (seed: number) =>
      sampling.sample({ prompt: [1, 2, 3, seed % 300], samplingParams: { maxTokens: 16, seed } });
    await sample(0);
    await metricsOf(url);
    const rounds: { seconds: number; delayMs: number; megabytes: number }[] = [];
    for (let round = 0; round < 3; round++) {
      const startedAt = performance.now();
      const seeds = Array.from({ length: load.samples }, (_, i) => round * load.samples + i);
      const answers = await Promise.all(seeds.map((seed) => sample(seed)));
      const seconds = (performance.now() - startedAt) / 1000;
      if (answers.length !== load.samples) throw new Error("an answer is missing");
      const metrics = await metricsOf(url);
      const delayMs = readMetric(metrics, "tinker_event_loop_delay_p99_seconds") * 1000;
      const megabytes = readMetric(metrics, "tinker_resident_bytes") / 1e6;
      rounds.push({ seconds, delayMs, megabytes });
    }
    const { samples, sessions } = load;
    const perSecond = samples / median(rounds.map(({ seconds }) => seconds));
    const delayMs = median(rounds.map((round) => round.delayMs));
    const memory = rounds.map(({ megabytes }) => `${megabytes.toFixed(0)} MB`).join(", ");
    console.log(
      `${samples} samples at once    all answered, ${perSecond.toFixed(0)} per second, beside ${sessions} sessions`,
    );
    console.log(
      `event loop of server   p99 ${delayMs.toFixed(1)} ms    ${ratio(delayMs, 50)} of the limit`,
    );
    console.log(`memory after rounds    ${memory}`);
    await Promise.all([...idle, service].map((client) => client.close()));
  });
}

async function withServer(
  options: StartServerOptions,
  work: (url: string, facts: { startMs: number }) => Promise<void>,
): Promise<void> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-"));
  const server = new ServerProcess({ dataDir, models: realModels, logLevel: "warn", ...options });
  try {
    const startMs = await timed(() => server.start());
    await work(`http://127.0.0.1:${server.port}`, { startMs });
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function timed(action: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await action();
  return performance.now() - startedAt;
}

async function metricsOf(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`, { headers: { "x-api-key": apiKey } });
  return response.text();
}

function readMetric(text: string, name: string): number {
  return Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function ratio(value: number, limit: number): string {
  return `${((value / limit) * 100).toFixed(0)} %`;
}
