import type { MemoryEstimate } from "@tinker-ts/engine";
import { broken, ok, type Finding } from "./finding.js";

/** Says what a model takes in memory, before any of its weights is read. */
export async function checkMemory(model: string): Promise<readonly Finding[]> {
  try {
    const { estimateMemory, findModel, machineBytes, readModelConfig } =
      await import("@tinker-ts/engine");
    const machine = machineBytes();
    const { folder } = await findModel(model);
    const config = await readModelConfig(folder);
    const found = (["f32", "int8"] as const).map((weights) => {
      const estimate = estimateMemory(config, { weights });
      return { weights, estimate, fits: estimate.bothBytes <= machine };
    });
    const fitting = found.find(({ fits }) => fits);
    return found.map(({ weights, estimate, fits }) => {
      const check = `Memory, ${weights}`;
      const finding = describe(model, estimate, machine);
      if (fits) return ok(check, finding);
      const wayOut =
        fitting === undefined
          ? "Choose a smaller model, or a machine with more memory."
          : `Use weights ${fitting.weights}, which fit.`;
      return { check, state: "warning", finding, wayOut };
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [broken("Memory", reason, "Give --model a folder, or an id of the hub.")];
  }
}

function describe(model: string, estimate: MemoryEstimate, machineBytes: number): string {
  const { trainingBytes, samplingBytes, bothBytes } = estimate;
  const [training, sampling, both, machine] = [
    trainingBytes,
    samplingBytes,
    bothBytes,
    machineBytes,
  ].map((bytes) => `${(bytes / 2 ** 30).toFixed(1)} GB`);
  return `${model}: ${training} to train, ${sampling} to sample, ${both} for both, of ${machine}`;
}
