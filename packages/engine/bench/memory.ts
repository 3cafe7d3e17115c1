import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { estimateMemory, type MemoryEstimate, type PrecisionOptions } from "@tinker-ts/engine";
import { heading, line, megabytes } from "./measure.js";
import type { MemoryPhase, MemoryScenario } from "./memory-phases.js";
import { writeModelFolder } from "./model-folder.js";
import { benchModels, type BenchModelName } from "./models.js";
import { runScript } from "./processes.js";

const weights = ["f32", "int8"] as const satisfies PrecisionOptions["weights"][];

const scenarios = {
  both: { text: "train and sample", plan: (estimate) => estimate.bothBytes },
  sampling: { text: "sample alone", plan: (estimate) => estimate.samplingBytes },
} as const satisfies Partial<
  Record<MemoryScenario, { text: string; plan: (estimate: MemoryEstimate) => number }>
>;

/** What real shapes may take. */
const goals: Readonly<Record<string, number>> = {
  "0.6B f32 both": 6.5e9,
  "0.6B int8 both": 3.5e9,
  "0.6B int8 sampling": 1.6e9,
  "Qwen3.5-0.8B int8 both": 4e9,
};

/** What processes hold after each phase, and their peaks beside what was planned before anything was read. */
export async function benchMemory(names: readonly BenchModelName[]): Promise<void> {
  const root = await mkdtemp(path.join(tmpdir(), "tinker-ts-memory-"));
  try {
    for (const name of names) {
      const folder = path.join(root, name);
      await writeModelFolder(folder, benchModels[name]);
      for (const precision of weights) measure(folder, name, precision);
      await rm(folder, { recursive: true });
    }
  } finally {
    await rm(root, { recursive: true });
  }
}

function measure(folder: string, name: BenchModelName, precision: "f32" | "int8"): void {
  const estimate = estimateMemory(benchModels[name], { weights: precision });
  for (const [scenario, { text, plan }] of Object.entries(scenarios)) {
    heading(`Memory of ${name} in ${precision}: ${text}`);
    const args = [folder, scenario, JSON.stringify({ weights: precision })];
    const phases: readonly MemoryPhase[] = JSON.parse(runScript("memory-phases.ts", args));
    for (const phase of phases) {
      line(phase.name, `${megabytes(phase.residentBytes)}, peak ${megabytes(phase.peakBytes)}`);
    }
    const [planned, measured] = [plan(estimate), phases.at(-1)?.peakBytes ?? NaN];
    const goal = goals[`${name} ${precision} ${scenario}`];
    line(
      "planned, measured",
      `${megabytes(planned)}, ${megabytes(measured)}`,
      `planned ${(planned / measured).toFixed(2)} x measured` +
        (goal === undefined ? "" : `; goal: at most ${megabytes(goal)}`),
    );
  }
}
