import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ModelConfig } from "@tinker-ts/engine";
import { startLineProcess, type LineProcess } from "./line-process.js";

/** The Python that has torch: that of the variable PYTHON, or `python3`. */
export function pythonWithTorch(): string | undefined {
  const python = process.env["PYTHON"] ?? "python3";
  const found = spawnSync(python, ["-c", "import torch"], { stdio: "ignore" });
  return found.status === 0 ? python : undefined;
}

/** PyTorch in a process of its own, with a model of the same shape and adapters; see torch-steps.py for what it is asked. */
export function startTorch(
  python: string,
  config: ModelConfig,
  rank: number,
): Promise<LineProcess> {
  const script = fileURLToPath(new URL("torch-steps.py", import.meta.url));
  return startLineProcess(python, ["-W", "ignore", script, JSON.stringify(config), String(rank)]);
}
