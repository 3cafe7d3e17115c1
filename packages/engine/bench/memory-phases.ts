// Started by memory.ts in a process of its own, so that its memory is its own: loads a model from a folder, trains it,
// samples, or both, and prints what the process holds after each phase and the most that it ever held.
import { readFileSync } from "node:fs";
import { Engine, type PrecisionOptions } from "@tinker-ts/engine";
import { randomDatum } from "./data.js";

/** What is done in the process, phase by phase. */
export type MemoryScenario = "both" | "training" | "sampling";

/** Memory of the process after a phase. */
export interface MemoryPhase {
  readonly name: string;
  readonly residentBytes: number;
  /** The most since the process began. */
  readonly peakBytes: number;
}

const [folder = "", scenario = "both", given = "{}"] = process.argv.slice(2);
const options = JSON.parse(given) as PrecisionOptions & { readonly length?: number };
const phases: MemoryPhase[] = [];
const phase = async (name: string, action: () => Promise<unknown>): Promise<void> => {
  await action();
  phases.push({ name, ...processMemory() });
};

await phase("start", async () => {});
const engine = await Engine.create();
await phase("engine", async () => {});
const model = await engine.loadModel(folder, options);
await phase("load", async () => {});
const adapter = await model.createAdapter({ rank: 32 });
const data = [1, 2, 3, 4].map((seed) =>
  randomDatum(model.vocabSize, options.length ?? 256, 0, seed),
);
const step = async (): Promise<void> => {
  await adapter.forwardBackward(data, { lossFn: "cross_entropy" });
  await adapter.optimStep({ learningRate: 1e-5 });
};
const sample = async (): Promise<void> => {
  const snapshot = await adapter.snapshot();
  await model.sample({
    adapter: snapshot,
    prompt: [1, 2, 3, 4],
    maxTokens: 8,
    numSamples: 8,
    seed: 1,
  });
  await snapshot.release();
};
if (scenario !== "sampling") {
  await phase("first step", step);
  await phase("second step", step);
}
if (scenario !== "training") await phase("sampling", sample);
if (scenario === "both") {
  await phase("step after it", step);
  await phase("sampling again", sample);
}
console.log(JSON.stringify(phases));
await engine.close();

/** What the kernel knows of this process; elsewhere than on Linux the peak alone is known. */
function processMemory(): Omit<MemoryPhase, "name"> {
  try {
    const status = readFileSync("/proc/self/status", "utf8");
    const field = (name: string): number =>
      1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
    return { residentBytes: field("VmRSS"), peakBytes: field("VmHWM") };
  } catch {
    const peakBytes = process.resourceUsage().maxRSS * 1024;
    return { residentBytes: process.memoryUsage.rss(), peakBytes };
  }
}
