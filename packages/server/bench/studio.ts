// What the studio costs the server, each figure beside its budget: curves of a million points, a step with and without
// recording and open pages, a large folder of logs, thousands of runs.
//   npm run bench:studio -w packages/server [-- curves training folder runs]
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import { setImmediate } from "node:timers/promises";
import { Datum, ServiceClient } from "tinker-ts";
import { readStudioSeries } from "tinker-ts/wire";
import { createLocalHandler, type LocalHandler } from "../src/index.js";
import { fillPoints, peak } from "./fill-points.js";
import { budget, median, undisturbed } from "./measure.js";

const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-studio-"));
const reports = {
  curves: reportCurves,
  training: reportTraining,
  folder: reportFolder,
  runs: reportRuns,
};
const chosen = process.argv.slice(2);

console.log(`load of the machine ${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
try {
  for (const [name, report] of Object.entries(reports)) {
    if (chosen.length === 0 || chosen.includes(name)) await report();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** 61: one curve of a million points, whole and in parts. */
async function reportCurves(): Promise<void> {
  const dataDir = path.join(folder, "million");
  await fillPoints(dataDir, { runs: 1, points: 1_000_000, name: "run" });
  const ask = async (local: LocalHandler, query: string): Promise<{ ms: number; max: number }> => {
    // A question over the network comes in a turn of its own; two in one would count as one that holds the loop.
    await setImmediate();
    const startedAt = performance.now();
    const response = await local.fetch(
      new Request(
        `http://localhost/studio/api/series?runs=run-0&keys=nll${query.includes("buckets") ? "" : "&buckets=1000"}${query}`,
      ),
    );
    const [series] = readStudioSeries(await response.arrayBuffer());
    return { ms: performance.now() - startedAt, max: Math.max(...series!.max) };
  };
  // Each of these is the first question to a server that has just started.
  for (const [what, query] of [
    ["whole and cold", ""],
    ["as finely as smoothing needs, cold", "&buckets=2400"],
  ] as const) {
    const local = await createLocalHandler({ dataDir, logLevel: "silent" });
    const { ms, max } = await ask(local, query);
    if (max !== peak) throw new Error("the peak is not there");
    budget("61", `a million points, ${what}`, ms, 150, "ms");
    await local.close();
  }
  const local = await createLocalHandler({ dataDir, logLevel: "silent" });
  await ask(local, "");
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  for (const [what, more] of [
    ["a zoom", ""],
    ["a zoom for smoothing", "&buckets=2400"],
  ] as const) {
    const zooms: number[] = [];
    for (let from = 0; from < 900_000; from += 45_000) {
      zooms.push((await ask(local, `&from=${from}&to=${from + 50_000}${more}`)).ms);
    }
    budget("61", `${what}, middle one of ${zooms.length}`, median(zooms), 50, "ms");
    budget("61", `${what}, longest of ${zooms.length}`, Math.max(...zooms), 50, "ms");
  }
  await rested(delays);
  budget("61", "event loop held meanwhile, at most", delays.max / 1e6, 50, "ms");
  await local.close();
}

/** The last turn is only counted in the next one. */
async function rested(delays: IntervalHistogram): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  delays.disable();
}

interface Side {
  readonly local: LocalHandler;
  readonly service: ServiceClient;
  readonly step: () => Promise<void>;
  readonly times: number[];
}

/** 64: steps in turns, on two servers of which one records, and on one with and without an open page. */
async function reportTraining(): Promise<void> {
  const [on, off] = await Promise.all([trainer("on", true), trainer("off", false)]);
  for (let round = 0; round < 420; round++) {
    for (const side of round % 2 === 0 ? [on, off] : [off, on]) {
      const ms = await timedStep(side);
      if (round >= 20) side.times.push(ms);
    }
  }
  const [recording, plain] = [undisturbed(on.times), undisturbed(off.times)];
  console.log(`      a step: ${recording.toFixed(2)} ms recording, ${plain.toFixed(2)} ms without`);
  budget("64", "recording, share of a step", share(recording, plain), 1, "%");
  const watched: number[] = [];
  const closed: number[] = [];
  for (let turn = 0; turn < 12; turn++) {
    const page = turn % 2 === 0 ? await openPage(on) : null;
    for (let step = 0; step < 12; step++) {
      const ms = await timedStep(on);
      if (step >= 2) (page ? watched : closed).push(ms);
    }
    await page?.close();
  }
  budget(
    "64",
    "an open page, share of a step",
    share(undisturbed(watched), undisturbed(closed)),
    1,
    "%",
  );
  for (const { service, local } of [on, off]) {
    await service.close();
    await local.close();
  }
}

/** How much more one is than the other, in percent. */
function share(more: number, less: number): number {
  return Math.max(0, more / less - 1) * 100;
}

async function timedStep({ step }: Side): Promise<number> {
  const startedAt = performance.now();
  await step();
  return performance.now() - startedAt;
}

async function trainer(name: string, recording: boolean): Promise<Side> {
  const dataDir = path.join(folder, `training-${name}`);
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
  const tokens = Array.from({ length: 64 }, (_, index) => (index * 37) % 500);
  const lossFnInputs = {
    target_tokens: tokens.slice(1),
    weights: tokens.slice(1).map(() => 1),
  };
  const data = Array.from(
    { length: 8 },
    () => new Datum({ modelInput: tokens.slice(0, -1), lossFnInputs }),
  );
  const step = async (): Promise<void> => {
    const pass = training.forwardBackward(data, "cross_entropy");
    await Promise.all([pass, training.optimStep({ learningRate: 1e-4 })]);
  };
  return { local, service, step, times: [] };
}

/** What a page with twelve charts does: it reads the stream, and asks for its curves twice a second. */
async function openPage({ local }: Side): Promise<{ close: () => Promise<void> }> {
  const ask = (what: string, signal?: AbortSignal): Promise<Response> =>
    local.fetch(new Request(`http://localhost/studio/api/${what}`, signal ? { signal } : {}));
  const { runs } = (await (await ask("runs")).json()) as { runs: { id: string }[] };
  const { id } = runs[0]!;
  const detail = (await (await ask(`runs/${id}`)).json()) as { series: { key: string }[] };
  const keys = detail.series.slice(0, 12).map(({ key }) => `keys=${encodeURIComponent(key)}`);
  const abort = new AbortController();
  const stream = await ask(`events?topics=runs,run:${id}`, abort.signal);
  const reading = stream.body!.pipeTo(new WritableStream()).catch(() => {});
  const asking = setInterval(() => {
    void ask(`series?runs=${id}&${keys.join("&")}&buckets=600`).then((answer) =>
      answer.arrayBuffer(),
    );
  }, 500);
  return {
    async close() {
      clearInterval(asking);
      abort.abort();
      await reading;
    },
  };
}

/** 65: a folder with a hundred megabytes of metrics. */
async function reportFolder(): Promise<void> {
  const run = path.join(folder, "logs");
  await mkdir(run);
  const file = await open(path.join(run, "metrics.jsonl"), "w");
  let lines = 0;
  for (let size = 0; size < 100e6;) {
    const some: string[] = [];
    for (let count = 0; count < 10_000; count++, lines++) {
      const values = Array.from(
        { length: 10 },
        (_, key) => `"metric/${key}": ${Math.sin(lines + key)}`,
      );
      some.push(`{"step": ${lines}, ${values.join(", ")}}\n`);
    }
    const text = some.join("");
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
  const points = async (): Promise<number> =>
    readStudioSeries(await (await get(query)).arrayBuffer())[0]!.total;
  const first = await points();
  const seconds = (performance.now() - startedAt) / 1000;
  budget("65", `100 MB of metrics, first curve (${first} of ${lines} lines)`, seconds, 3, "s");
  while ((await points()) < lines) await new Promise((resolve) => setTimeout(resolve, 50));
  console.log(`      all lines after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  await rested(delays);
  budget("65", "event loop held meanwhile, at most", delays.max / 1e6, 50, "ms");
  await local.close();
}

/** Thousands of runs in a list: no point of its own, but the scope that lists are made for. */
async function reportRuns(): Promise<void> {
  const dataDir = path.join(folder, "runs");
  await fillPoints(dataDir, { runs: 5000, points: 20, name: "run" });
  const local = await createLocalHandler({ dataDir, logLevel: "silent" });
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const ask = async (query: string): Promise<number> => {
    await setImmediate();
    const startedAt = performance.now();
    const answer = await local.fetch(
      new Request(`http://localhost/studio/api/runs?limit=500${query}`),
    );
    const { runs } = (await answer.json()) as { runs: unknown[] };
    if (runs.length !== 500) throw new Error(`a page of ${runs.length} runs`);
    return performance.now() - startedAt;
  };
  budget("59", "5,000 runs: the first 500, cold", await ask(""), 500, "ms");
  budget("59", "5,000 runs: sorted by a metric, cold", await ask("&sort=nll.min"), 2000, "ms");
  budget("59", "5,000 runs: sorted by a metric again", await ask("&sort=nll.max"), 500, "ms");
  await rested(delays);
  budget("59", "event loop held meanwhile, at most", delays.max / 1e6, 50, "ms");
  await local.close();
}
