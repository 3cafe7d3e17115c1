import { broken, ok, type Finding } from "./finding.js";

/**
 * Has the engine compare a GPU with the processor, part by part. A machine without one is well; one whose numbers
 * are wrong is not.
 */
export async function checkGpu(): Promise<Finding[]> {
  const { Engine, EngineError } = await import("@tinker-ts/engine");
  try {
    const engine = await Engine.create({ device: "gpu" });
    const { check } = engine.device;
    await engine.close();
    return (check?.parts ?? []).map(({ name, difference, deviceMs, processorMs }) =>
      ok(
        `GPU: ${name}`,
        `differs by ${difference.toExponential(1)}; ${milliseconds(deviceMs)}, on the processor ${milliseconds(processorMs)}`,
      ),
    );
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.code === "device_differs") {
      return [broken("GPU", error.message, "Use --device cpu; docs/gpu.md says what to report.")];
    }
    const wayOut = "Nothing is wrong; the processor computes. docs/gpu.md says what a GPU needs.";
    return [{ check: "GPU", state: "skipped", finding: error.message, wayOut }];
  }
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
