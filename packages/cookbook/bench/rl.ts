// Where the time of synchronous training by rewards goes, on the embedded engine with the small model, whose passes are short:
// with any larger one the engine's part is larger. The engine works in a thread of its own, so its part is the time in which
// that thread is busy; what the loop, the client and the server in this process take is the time in which this one is.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Worker } from "node:worker_threads";
import { getRenderer, recommendedRenderer } from "@tinker-ts/cookbook/renderers";
import { problemGroup, train } from "@tinker-ts/cookbook/rl";
import { ServiceClient } from "tinker-ts";

const goal = 0.9;
const steps = Number(process.env["BENCH_STEPS"] ?? 12);
const groups = 16;
const size = 8;
const model = "tinker-ts/sprout";

const workers: Worker[] = [];
process.on("worker", (worker) => workers.push(worker));

const folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-rl-bench-"));
process.env["TINKER_TS_DATA_DIR"] = path.join(folder, "data");
const service = new ServiceClient({ baseUrl: "local:" });
try {
  const sampling = await service.createSamplingClient({ baseModel: model });
  const tokenizer = await sampling.getTokenizer();
  const renderer = await getRenderer(recommendedRenderer(model, tokenizer), tokenizer);
  const batch = () =>
    Array.from({ length: groups }, () =>
      problemGroup(
        { prompt: "Tell me a story.", grade: (answer) => /\bfox\b/i.test(answer) },
        { renderer, size },
      ),
    );
  const spans = { sampling: 0, train: 0, sync: 0, prepare: 0 };
  // The first step compiles graphs.
  let start = mark();
  await train({
    service,
    model,
    folder: path.join(folder, "run"),
    dataset: { length: steps + 1, batch },
    maxTokens: 48,
    learningRate: 1e-4,
    loraRank: 16,
    saveEvery: 0,
    onProgress: ({ step, metrics }) => {
      if (step === 1) start = mark();
      if (step <= 1) return;
      for (const name of Object.keys(spans) as (keyof typeof spans)[]) {
        spans[name] += Number(metrics[`time/${name}`] ?? 0) * 1000;
      }
      if (step === steps + 1) tell(start, mark(), spans);
    },
  });
} finally {
  await service.close();
  await rm(folder, { recursive: true, force: true });
}

interface Mark {
  readonly clockMs: number;
  /** Milliseconds that this thread was busy. */
  readonly ownMs: number;
  /** The same of every worker. */
  readonly workersMs: readonly number[];
}

function mark(): Mark {
  return {
    clockMs: performance.now(),
    ownMs: performance.eventLoopUtilization().active,
    workersMs: workers.map((worker) => worker.performance.eventLoopUtilization().active),
  };
}

function tell(first: Mark, last: Mark, spans: Readonly<Record<string, number>>): void {
  const clock = last.clockMs - first.clockMs;
  const busy = last.workersMs.map((active, index) => active - (first.workersMs[index] ?? 0));
  // Of the threads that were started, the engine is the one that computes.
  const engine = Math.max(...busy);
  const own = last.ownMs - first.ownMs;
  const share = (ms: number): string => `${((ms / clock) * 100).toFixed(1).padStart(5)} %`;
  console.log(
    `${steps} steps of ${groups * size} episodes: ${(clock / steps).toFixed(0)} ms a step`,
  );
  console.log("what the loop waits for or does:");
  for (const [name, ms] of Object.entries(spans)) console.log(`  ${share(ms)}  ${name}`);
  console.log("which thread is busy; they overlap:");
  console.log(`  ${share(engine)}  the engine`);
  console.log(`  ${share(own)}  own code: loop, client, server`);
  console.log(`  ${share(Math.max(0, clock - engine))}  the engine waits`);
  const verdict = engine / clock >= goal ? "holds" : "does not hold";
  console.log(
    `inside the engine ${share(engine).trim()}, goal: at least ${goal * 100} %: ${verdict}`,
  );
}
