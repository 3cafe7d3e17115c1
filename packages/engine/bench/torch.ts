import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ModelConfig } from "@tinker-ts/engine";

/** PyTorch in a process of its own, training the same model a step at a time. */
export interface TorchTrainer {
  /** Milliseconds of a step on `count` sequences of `length` tokens. */
  step(mode: "f32" | "bf16", count: number, length: number): Promise<number>;
  close(): void;
}

/** The Python that has torch: that of the variable PYTHON, or `python3`. */
export function pythonWithTorch(): string | undefined {
  const python = process.env["PYTHON"] ?? "python3";
  const found = spawnSync(python, ["-c", "import torch; print(torch.__version__)"], {
    encoding: "utf8",
  });
  return found.status === 0 ? python : undefined;
}

/** Starts PyTorch on a model. */
export async function startTorch(
  python: string,
  config: ModelConfig,
  rank: number,
): Promise<TorchTrainer> {
  const script = fileURLToPath(new URL("torch-steps.py", import.meta.url));
  const child = spawn(python, [script, JSON.stringify(config), String(rank)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  return {
    async step(mode, count, length) {
      child.stdin.write(`${mode} ${count}x${length}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error("PyTorch ended");
      return Number(value);
    },
    close: () => {
      child.stdin.end();
      void once(child, "exit");
    },
  };
}
