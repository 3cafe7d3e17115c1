import { broken, ok, type Finding } from "./finding.js";

/**
 * Has the engine compare a GPU with the processor, part by part. A machine without one is well; one whose numbers
 * are wrong is not.
 */
export async function checkGpu(): Promise<Finding[]> {
  const { EngineError } = await import("@tinker-ts/engine");
  try {
    const { check, name, reason } = await chosenDevice();
    const block = check?.promptBlock ?? null;
    return [
      ...(check?.parts ?? []).map(({ name: part, difference, deviceMs, processorMs }) =>
        ok(
          `GPU: ${part}`,
          `differs by ${difference.toExponential(1)}; ${milliseconds(deviceMs)}, on the processor ${milliseconds(processorMs)}`,
        ),
      ),
      ok("GPU: prompts", block === null ? "in long blocks" : `${block} tokens at a time`),
      ok(
        "GPU: speed",
        `${reason}; --device auto takes the ${name === "gpu" ? "GPU" : "processor"}`,
      ),
    ];
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.code === "device_differs") {
      return [broken("GPU", error.message, "Use --device cpu; docs/gpu.md says what to report.")];
    }
    const wayOut = "Nothing is wrong; the processor computes. docs/gpu.md says what a GPU needs.";
    return [{ check: "GPU", state: "skipped", finding: error.message, wayOut }];
  }
}

/** What "auto" makes of the GPU; throws where it cannot be used. */
async function chosenDevice() {
  const { Engine } = await import("@tinker-ts/engine");
  let engine = await Engine.create({ device: "auto" });
  if (engine.device.check === undefined) {
    await engine.close();
    engine = await Engine.create({ device: "gpu" });
  }
  await engine.close();
  return engine.device;
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
