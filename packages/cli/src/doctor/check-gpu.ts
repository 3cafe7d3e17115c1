import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Engine } from "@tinker-ts/engine";
import { broken, ok, type Finding } from "./finding.js";

/** The device that the engine chooses, or why a GPU cannot be used. */
type Answer =
  | { readonly device: Engine["device"] }
  | { readonly code: string; readonly message: string };

/** Device "auto" compares only where a GPU may be faster; without a comparison, device "gpu" makes one. */
const program = `
const { Engine } = await import(process.argv[1]);
const answer = { device: undefined };
try {
  for (const device of ["auto", "gpu"]) {
    const engine = await Engine.create({ device });
    await engine.close();
    answer.device = engine.device;
    if (answer.device.check !== undefined) break;
  }
} catch (error) {
  Object.assign(answer, { code: String(error.code), message: error.message });
}
process.stdout.write(JSON.stringify(answer));
`;

/**
 * Compares a GPU with the processor, part by part. A missing GPU is skipped; wrong numbers are an error. The comparison
 * runs in another process, because graphics drivers write warnings to stderr and may crash.
 */
export async function checkGpu(): Promise<Finding[]> {
  const answer = await compareDevices();
  if ("code" in answer) {
    if (answer.code === "device_differs") {
      return [broken("GPU", answer.message, "Use --device cpu; docs/gpu.md says what to report.")];
    }
    const remedy = "Nothing is wrong; the processor computes. docs/gpu.md says what a GPU needs.";
    return [{ check: "GPU", state: "skipped", finding: answer.message, remedy }];
  }
  const { check, name, reason } = answer.device;
  const block = check?.promptBlock ?? null;
  return [
    ...(check?.parts ?? []).map(({ name: part, difference, deviceMs, processorMs }) =>
      ok(
        `GPU: ${part}`,
        `differs by ${difference.toExponential(1)}; ${milliseconds(deviceMs)}, on the processor ${milliseconds(processorMs)}`,
      ),
    ),
    ok("GPU: prompts", block === null ? "in long blocks" : `${block} tokens at a time`),
    ok("GPU: speed", `${reason}; --device auto takes the ${name === "gpu" ? "GPU" : "processor"}`),
  ];
}

async function compareDevices(): Promise<Answer> {
  const args = ["--input-type=module", "--eval", program, import.meta.resolve("@tinker-ts/engine")];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return JSON.parse(stdout) as Answer;
  } catch (error) {
    const { signal, code } = error as { signal?: string | null; code?: number | string };
    return {
      code: "crashed",
      message: `the check of the GPU ended with ${signal ?? `exit code ${code}`}`,
    };
  }
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
