import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { BenchModel } from "./bench-model.js";
import { line, median, timed } from "./measure.js";

const program = path.resolve(import.meta.dirname, "../../cli/bin/tinker-ts.js");
const limitMs = 1500;

/** From starting `tinker-ts serve` to the line that says that it listens. */
export async function reportReadiness(model: BenchModel): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) times.push(await startOnce(model));
  const startMs = median(times);
  line("serve is ready", `${startMs.toFixed(0)} ms`, { is: startMs, of: limitMs });
}

async function startOnce(model: BenchModel): Promise<number> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-bench-"));
  const options = ["--port", "0", "--data", dataDir, "--model", `bench=${model.folder}`];
  try {
    let child: ReturnType<typeof spawn> | undefined;
    const startMs = await timed(async () => {
      child = spawn(process.execPath, [program, "serve", ...options], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      const [first] = (await once(createInterface(child.stdout!), "line")) as [string];
      if (!first.startsWith("listening on")) throw new Error(first);
    });
    const ended = once(child!, "exit");
    child!.kill("SIGTERM");
    await ended;
    return startMs;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
