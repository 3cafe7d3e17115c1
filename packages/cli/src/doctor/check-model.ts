import type { MemoryEstimate, ModelConfig } from "@tinker-ts/engine";
import { thinkingModes } from "../output/thinking-modes.js";
import { broken, ok, type Finding } from "./finding.js";

/**
 * Whether a model would load, and its memory: its tensors are compared with its configuration by the headers of its
 * files, its template is tried, its memory planned. No weight is read.
 */
export async function checkModel(model: string): Promise<readonly Finding[]> {
  const { findModel } = await import("@tinker-ts/engine");
  let folder: string;
  try {
    ({ folder } = await findModel(model));
  } catch (error) {
    return [broken("Model", reasonOf(error), "Give --model a folder, or an id of the hub.")];
  }
  return [
    await checkWeights(folder),
    await checkTemplate(folder),
    ...(await checkMemory(model, folder)),
  ];
}

async function checkWeights(folder: string): Promise<Finding> {
  const { openModelFolder } = await import("@tinker-ts/engine");
  try {
    const opened = await openModelFolder(folder);
    await opened.close();
    const { config, weights, ignored } = opened;
    const left =
      ignored.length === 0
        ? ""
        : `; ${ignored.length} of other parts, such as "${ignored[0]}", are ignored`;
    const fits = `${weights.tensors.size} tensors fit config.json`;
    return ok("Model", `${config.architecture}, ${describeLayers(config)}; ${fits}${left}`);
  } catch (error) {
    const remedy = "docs/models.md lists what loads; download a damaged folder again.";
    return broken("Model", reasonOf(error), remedy);
  }
}

const mixerNames = {
  attention: "with attention",
  deltaRule: "with the gated delta rule",
  convolution: "with a short convolution",
  mamba: "with Mamba 2",
} as const;

function describeLayers({ layers, layerKinds = [] }: ModelConfig): string {
  const counts = new Map<string, number>();
  for (const { mixer = "attention" } of layerKinds) {
    counts.set(mixerNames[mixer], (counts.get(mixerNames[mixer]) ?? 0) + 1);
  }
  if (counts.size < 2) return `${layers} layers`;
  const parts = [...counts].map(([name, count]) => `${count} ${name}`);
  return `${layers} layers, ${parts.join(" and ")}`;
}

async function checkTemplate(folder: string): Promise<Finding> {
  const { loadTokenizer, thinkingState } = await import("@tinker-ts/hub");
  const check = "Chat template";
  try {
    const tokenizer = await loadTokenizer(folder);
    if (!tokenizer.chatTemplates.has("default")) {
      return ok(check, "none, as usual for base models; chats need a renderer, see docs/cookbook");
    }
    const asked = [{ role: "user", content: "Hi" }];
    const prompt = await tokenizer.renderChat(asked, { addGenerationPrompt: true });
    const mode = thinkingModes[thinkingState(prompt)] ?? "decides itself whether to think";
    return ok(check, `found; the model ${mode}`);
  } catch (error) {
    const remedy = "Training on tokens and a renderer of the cookbook's work without a template.";
    return { check, state: "warning", finding: reasonOf(error), remedy };
  }
}

/** Reports the memory of a model. */
async function checkMemory(model: string, folder: string): Promise<readonly Finding[]> {
  const { estimateMemory, machineBytes, readModelConfig } = await import("@tinker-ts/engine");
  const machine = machineBytes();
  let config: ModelConfig;
  try {
    config = await readModelConfig(folder);
  } catch {
    // Errors of the configuration are reported by the model's check.
    return [];
  }
  const found = (["f32", "int8"] as const).map((weights) => {
    const estimate = estimateMemory(config, { weights });
    return { weights, estimate, fits: estimate.bothBytes <= machine };
  });
  const fitting = found.find(({ fits }) => fits);
  return found.map(({ weights, estimate, fits }) => {
    const check = `Memory, ${weights}`;
    const finding = describeMemory(model, estimate, machine);
    if (fits) return ok(check, finding);
    const remedy =
      fitting === undefined
        ? "Choose a smaller model, or a machine with more memory."
        : `Use weights ${fitting.weights}, which fit.`;
    return { check, state: "warning", finding, remedy };
  });
}

function describeMemory(model: string, estimate: MemoryEstimate, machineBytes: number): string {
  const { trainingBytes, samplingBytes, bothBytes } = estimate;
  const [training, sampling, both, machine] = [
    trainingBytes,
    samplingBytes,
    bothBytes,
    machineBytes,
  ].map((bytes) => `${(bytes / 2 ** 30).toFixed(1)} GB`);
  return `${model}: ${training} to train, ${sampling} to sample, ${both} for both, of ${machine}`;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
