import { ArgumentError } from "../errors/argument-error.js";

/** What to sample from: saved weights or a base model. */
export interface SamplingSource {
  /** The path of saved weights (`tinker://...`). */
  readonly modelPath?: string | undefined;
  /** The name of a base model. */
  readonly baseModel?: string | undefined;
}

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
  if (modelPath && !modelPath.startsWith("tinker://")) {
    throw new ArgumentError("modelPath", `${JSON.stringify(modelPath)} must start with tinker://`);
  }
}
