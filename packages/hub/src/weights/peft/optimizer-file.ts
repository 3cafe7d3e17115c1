import path from "node:path";
import { isFile } from "../../files/paths.js";
import { EngineError } from "../engine-error.js";
import { writeSafetensors, type TensorToWrite } from "../safetensors-writer.js";
import { SafetensorsFile } from "../safetensors.js";
import { formatShape, sameShape } from "../safetensors-header.js";
import type { LoraAdapter, NamedTensor, OptimizerState } from "./adapter.js";

/** Name of the file with Adam's moments. */
const optimizerFile = "optimizer.safetensors";

const prefixes = { firstMoments: "exp_avg.", secondMoments: "exp_avg_sq." } as const;

/** Writes an optimizer's state into an adapter's folder. */
export async function writeOptimizer(
  folder: string,
  adapter: LoraAdapter,
  state: OptimizerState,
  signal?: AbortSignal,
): Promise<void> {
  const tensors: TensorToWrite[] = [];
  for (const moments of ["firstMoments", "secondMoments"] as const) {
    for (const [name, { shape }] of adapter.tensors) {
      const moment = state[moments].get(name);
      if (!moment || !sameShape(moment.shape, shape)) {
        throw new EngineError(
          "invalid_tensor",
          `The optimizer's ${moments} of "${name}" must have shape ${formatShape(shape)}.`,
        );
      }
      tensors.push({ name: prefixes[moments] + name, shape, data: moment.data });
    }
  }
  await writeSafetensors(path.join(folder, optimizerFile), tensors, {
    metadata: { step: String(state.step) },
    ...(signal ? { signal } : {}),
  });
}

/** Reads the optimizer's state that belongs to an adapter; null if the folder has none. */
export async function readOptimizer(
  folder: string,
  adapter: LoraAdapter,
  signal?: AbortSignal,
): Promise<OptimizerState | null> {
  const file = path.join(folder, optimizerFile);
  if (!(await isFile(file))) return null;
  const stored = await SafetensorsFile.open(file, signal);
  try {
    return {
      step: readStep(stored),
      firstMoments: await readMoments(stored, prefixes.firstMoments, adapter, signal),
      secondMoments: await readMoments(stored, prefixes.secondMoments, adapter, signal),
    };
  } finally {
    await stored.close();
  }
}

function readStep(file: SafetensorsFile): number {
  const text = file.metadata["step"] ?? "";
  if (/^\d+$/.test(text)) return Number(text);
  throw new EngineError("invalid_optimizer", `${file.path} does not contain its number of steps.`);
}

async function readMoments(
  file: SafetensorsFile,
  prefix: string,
  adapter: LoraAdapter,
  signal?: AbortSignal,
): Promise<Map<string, NamedTensor>> {
  const moments = new Map<string, NamedTensor>();
  for (const [name, { shape }] of adapter.tensors) {
    const stored = file.tensors.get(prefix + name);
    if (!stored || !sameShape(stored.shape, shape)) {
      throw new EngineError(
        "invalid_optimizer",
        `${file.path} does not fit the adapter: "${prefix}${name}" of shape ${formatShape(shape)} is not in it.`,
      );
    }
    moments.set(name, { shape, data: await file.readFloats(prefix + name, undefined, signal) });
  }
  return moments;
}
