import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { readStudioSeries } from "tinker-ts/wire";
import { createLocalHandler } from "../src/index.js";
import { appendPoints } from "../src/recording/fold-points.js";
import { OpenPoint } from "../src/recording/merge-points.js";
import { Store } from "../src/store/store.js";
import { median, undisturbed } from "./measure.js";

/*
 * What the studio costs: a step with and without recording, curves of a million points, a large folder of logs.
 * Each line is what was measured and what it may be.
 *   npm run bench:studio -w packages/server
 */
const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-studio-"));
console.log(`load of the machine ${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
const tell = (what: string, measured: number, budget: number, unit: string): void =>
  console.log(
    `${what}: ${measured.toFixed(2)} of ${budget} ${unit} (${(measured / budget).toFixed(2)})`,
  );

try {
  await recordingCost();
  await millionPoints();
  await largeFolder();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Steps on two servers in turns, one of which records. */
async function recordingCost(): Promise<void> {
  const { ServiceClient, Datum } = await import("tinker-ts");
  const sides = await Promise.all(
    [true, false].map(async (recording) => {
      const dataDir = path.join(folder, `recording-${String(recording)}`);
      const local = await createLocalHandler({ dataDir, recording, logLevel: "silent" });
      const service = new ServiceClient({
        baseUrl: "http://local.invalid",
        apiKey: "tml-bench",
        fetch: local.fetch,
      });
      const training = await service.createLoraTrainingClient({
        baseModel: "tinker-ts/sprout",
        rank: 32,
      });
      return { local, service, training, times: [] as number[] };
    }),
  );
  const tokens = Array.from({ length: 64 }, (_, index) => (index * 37) % 500);
  const data = Array.from(
    { length: 8 },
    () =>
      new Datum({
        modelInput: tokens.slice(0, -1),
        lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
      }),
  );
  for (let round = 0; round < 120; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const startedAt = performance.now();
      const pass = side.training.forwardBackward(data, "cross_entropy");
      const step = side.training.optimStep({ learningRate: 1e-4 });
      await Promise.all([pass, step]);
      if (round >= 20) side.times.push(performance.now() - startedAt);
    }
  }
  const [on, off] = sides.map(({ times }) => undisturbed(times)) as [number, number];
  console.log(`a step: ${on.toFixed(2)} ms recording, ${off.toFixed(2)} ms without`);
  tell("recording, share of a step", Math.max(0, on / off - 1) * 100, 1, "%");
  for (const { service, local } of sides) {
    await service.close();
    await local.close();
  }
}

async function millionPoints(): Promise<void> {
  const dataDir = path.join(folder, "million");
  const store = new Store(dataDir, { durability: "process" });
  await store.write(() => {
    store.logs.insert({ logId: "run", owner: "local", source: "log", createdAt: 0 });
    for (let start = 0; start < 1_000_000; start += 100_000) {
      const points = Array.from({ length: 100_000 }, (_, index) => {
        const point = new OpenPoint(1, start + index);
        point.add("log", start + index, { a: start + index === 617_203 ? 1000 : Math.sin(index) });
        return point;
      });
      appendPoints(store, "run", points);
    }
  });
  await store.close();
  const local = await createLocalHandler({ dataDir, logLevel: "silent" });
  const ask = async (query: string): Promise<{ ms: number; max: number }> => {
    const startedAt = performance.now();
    const response = await local.fetch(
      new Request(`http://localhost/studio/api/series?runs=run&keys=a&buckets=1000${query}`),
    );
    const [series] = readStudioSeries(await response.arrayBuffer());
    return { ms: performance.now() - startedAt, max: Math.max(...series!.max) };
  };
  const cold = await ask("");
  if (cold.max !== 1000) throw new Error("the peak is not there");
  tell("a million points, whole and cold", cold.ms, 150, "ms");
  tell("a million points, smoothed", (await ask("&smooth=100")).ms, 150, "ms");
  const zooms: number[] = [];
  for (let from = 0; from < 900_000; from += 90_000) {
    zooms.push((await ask(`&from=${from}&to=${from + 50_000}`)).ms);
  }
  tell("a zoom", median(zooms), 50, "ms");
  await local.close();
}

async function largeFolder(): Promise<void> {
  const run = path.join(folder, "logs");
  await mkdir(run);
  const file = await open(path.join(run, "metrics.jsonl"), "w");
  let size = 0;
  for (let step = 0; size < 100e6;) {
    const lines: string[] = [];
    for (let count = 0; count < 10_000; count++, step++) {
      const values = Array.from(
        { length: 10 },
        (_, key) => `"metric/${key}": ${Math.sin(step + key)}`,
      );
      lines.push(`{"step": ${step}, ${values.join(", ")}}\n`);
    }
    const text = lines.join("");
    size += text.length;
    await file.write(text);
  }
  await file.close();
  const dataDir = path.join(folder, "folder-data");
  const local = await createLocalHandler({ dataDir, logFolders: [run], logLevel: "silent" });
  const get = (what: string) => local.fetch(new Request(`http://localhost/studio/api/${what}`));
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const startedAt = performance.now();
  const { runs } = (await (await get("runs")).json()) as { runs: { id: string }[] };
  const query = `series?runs=${runs[0]!.id}&keys=metric/0&buckets=1000`;
  readStudioSeries(await (await get(query)).arrayBuffer());
  tell("100 MB of metrics, first curve", (performance.now() - startedAt) / 1000, 3, "s");
  let total = 0;
  for (let before = -1; total !== before;) {
    before = total;
    await new Promise<void>((resolve) => setTimeout(resolve, 1500));
    total = readStudioSeries(await (await get(query)).arrayBuffer())[0]!.total;
  }
  console.log(`all ${total} lines after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  tell("event loop held at most", delays.max / 1e6, 50, "ms");
  delays.disable();
  await local.close();
}
