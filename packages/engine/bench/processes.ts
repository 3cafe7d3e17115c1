import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { embeddedModelId } from "@tinker-ts/engine";
import { heading, line, megabytes } from "./measure.js";

/** What a program of this folder prints, run in a process of its own. */
export function runScript(name: string, args: readonly string[] = []): string {
  const script = fileURLToPath(new URL(name, import.meta.url));
  const compiler = name.endsWith(".ts") ? process.execArgv : [];
  const child = spawnSync(process.execPath, [...compiler, script, ...args], { encoding: "utf8" });
  if (child.status !== 0) throw new Error(`${name} failed: ${child.stderr}`);
  return child.stdout;
}

/** A context of 4,096 tokens on M, within 6 GB. */
export function benchLongContext(): void {
  heading("One datum of 4,096 tokens on M, in a process of its own");
  const output: { ms: number; peakBytes: number } = JSON.parse(runScript("long-context.ts"));
  line("first step", `${(output.ms / 1000).toFixed(1)} s`);
  line("peak memory of the process", megabytes(output.peakBytes), "goal: at most 6144 MB");
}

/** From nothing to the first finished step on the embedded model. */
export function benchFirstStep(): void {
  heading("From starting Node to the first finished step");
  let best = Infinity;
  for (let i = 0; i < 3; i++) {
    const startMs = performance.now();
    runScript("first-step.mjs", [embeddedModelId]);
    best = Math.min(best, performance.now() - startMs);
  }
  line(embeddedModelId, `${(best / 1000).toFixed(2)} s`, "goal: under 1.0 s");
}
