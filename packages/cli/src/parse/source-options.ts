import { CliError } from "../output/cli-error.js";
import { parseCheckpointPath } from "./checkpoint-path.js";
import type { OptionSpecs } from "./option-spec.js";

/** What to sample from. */
export const sourceOptions = {
  baseModel: { type: "string", placeholder: "NAME", description: "A model; 'models' lists them" },
  modelPath: { type: "string", placeholder: "PATH", description: "A checkpoint, tinker://..." },
} as const satisfies OptionSpecs;

/** A base model or a checkpoint. */
export type Source = { readonly baseModel: string } | { readonly modelPath: string };

/** Exactly one of the two. */
export function readSource(options: {
  readonly baseModel: string | undefined;
  readonly modelPath: string | undefined;
}): Source {
  const { baseModel, modelPath } = options;
  if ((baseModel === undefined) === (modelPath === undefined)) {
    throw new CliError(
      "Pass either --base-model or --model-path.",
      "'tinker-ts models' lists models, 'tinker-ts checkpoint list' checkpoints.",
    );
  }
  if (modelPath === undefined) return { baseModel: baseModel ?? "" };
  parseCheckpointPath(modelPath);
  return { modelPath };
}
