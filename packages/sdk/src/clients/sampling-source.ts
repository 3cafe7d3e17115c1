import { option, type OptionsOf } from "../errors/check-options.js";
import { ArgumentError } from "../errors/argument-error.js";

/** The fields of `SamplingSource`. */
export const samplingSource = {
  /** The path of saved weights (`tinker://...`), or the folder of a run: its last checkpoint. */
  modelPath: option<string>(),
  /** The name of a base model. */
  baseModel: option<string>(),
};

/** What to sample from: saved weights or a base model. */
export interface SamplingSource extends OptionsOf<typeof samplingSource> {}

/** Checks that there is something to sample from. */
export function checkSamplingSource({ modelPath, baseModel }: SamplingSource): void {
  if (!modelPath && !baseModel) {
    throw new ArgumentError("modelPath", "pass modelPath or baseModel: what to sample from");
  }
  if (modelPath && baseModel) {
    throw new ArgumentError(
      "baseModel",
      "pass modelPath or baseModel, not both: saved weights know their base model",
    );
  }
  if (baseModel?.startsWith("tinker://")) {
    throw new ArgumentError("baseModel", `${baseModel} are saved weights; pass them as modelPath`);
  }
  if (modelPath && !modelPath.startsWith("tinker://")) {
    throw new ArgumentError("modelPath", `${JSON.stringify(modelPath)} must start with tinker://`);
  }
}

/** The path of saved weights; the folder of a run means its last checkpoint. */
export async function weightsPath(
  given: string,
  field: string,
  kind: "statePath" | "samplerPath",
): Promise<string> {
  if (typeof given === "string" && given.startsWith("tinker://")) return given;
  const { savedWeights } = await import("../run-log/saved-weights.js");
  return savedWeights(given, field, kind);
}
