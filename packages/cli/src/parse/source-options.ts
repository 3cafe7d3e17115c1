import { CliError } from "../errors/cli-error.js";
import { parseCheckpointPath } from "./checkpoint-path.js";
import type { OptionSpecs, OptionValues } from "./option-spec.js";

/** The model to sample from. */
export const sourceOptions = {
  model: {
    type: "string",
    short: "m",
    placeholder: "NAME|PATH",
    values: ["models", "checkpoints", "files"],
    description: "Base model ('models' lists them), checkpoint (tinker://...) or folder of a run",
  },
  baseModel: {
    type: "string",
    placeholder: "NAME",
    values: ["models", "files"],
    description: "Base model only",
  },
  modelPath: {
    type: "string",
    placeholder: "PATH",
    values: ["checkpoints"],
    description: "Checkpoint only",
  },
} as const satisfies OptionSpecs;

/** A base model or a checkpoint. */
export type Source = { readonly baseModel: string } | { readonly modelPath: string };

/** Exactly one of them. */
export function readSource(options: OptionValues<typeof sourceOptions>): Source {
  const { model, baseModel, modelPath } = options;
  const [given, ...others] = [model, baseModel, modelPath].filter((text) => text !== undefined);
  if (given === undefined || others.length > 0) {
    throw new CliError(
      given === undefined
        ? "No model is named: pass --model NAME or --model tinker://..."
        : "Pass only one of --model, --base-model and --model-path.",
      "'tinker-ts models' lists models, 'tinker-ts checkpoint list' checkpoints.",
    );
  }
  const isCheckpoint = modelPath !== undefined || given.startsWith("tinker://");
  if (!isCheckpoint) return { baseModel: given };
  if (baseModel !== undefined) {
    throw new CliError(`--base-model: ${given} is a checkpoint.`, "Pass it with --model.");
  }
  parseCheckpointPath(given);
  return { modelPath: given };
}

/** The name of a source. */
export function nameOf(source: Source): string {
  return "baseModel" in source ? source.baseModel : source.modelPath;
}
