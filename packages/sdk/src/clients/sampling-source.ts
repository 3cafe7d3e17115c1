import { ArgumentError } from "../errors/argument-error.js";

/** What to sample from: saved weights, a base model, or saved weights with their base model. */
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
  if (modelPath && !modelPath.startsWith("tinker://")) {
    throw new ArgumentError("modelPath", `${JSON.stringify(modelPath)} must start with tinker://`);
  }
}
