import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { readModelConfig, writeSafetensors, type Engine } from "@tinker-ts/engine";
import { heading, line, megabytes } from "./measure.js";

function runScript(name: string, args: readonly string[] = []): string {
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

/** From nothing to the first finished step on a small model. */
export async function benchFirstStep(engine: Engine): Promise<void> {
  heading("From starting Node to the first finished step");
  const folder = await mkdtemp(path.join(tmpdir(), "tinker-ts-bench-"));
  try {
    const name = await writeSmallModel(engine, folder);
    let best = Infinity;
    for (let i = 0; i < 3; i++) {
      const startMs = performance.now();
      runScript("first-step.mjs", [folder]);
      best = Math.min(best, performance.now() - startMs);
    }
    line(name, `${(best / 1000).toFixed(2)} s`, "goal: under 1.0 s");
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A model of the size that a package can carry: 6 layers of 192, 2.7 million weights. */
async function writeSmallModel(engine: Engine, folder: string): Promise<string> {
  const configJson = {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    vocab_size: 1024,
    hidden_size: 192,
    intermediate_size: 512,
    num_hidden_layers: 6,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 48,
    rms_norm_eps: 1e-6,
    max_position_embeddings: 2048,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    hidden_act: "silu",
  };
  await writeFile(path.join(folder, "config.json"), JSON.stringify(configJson));
  const model = await engine.createModel(await readModelConfig(folder), { seed: 1 });
  const tuning = await model.createFullTuning();
  const { tensors } = await tuning.exportState();
  await writeSafetensors(
    path.join(folder, "model.safetensors"),
    [...tensors].map(([name, tensor]) => ({ name, ...tensor, dtype: "BF16" as const })),
  );
  await model.unload();
  return "6 layers of 192, 2.7 million weights";
}
