import { CliError } from "../errors/cli-error.js";
import type { ArgumentSpecs } from "./option-spec.js";

/** The parts of a checkpoint's path. */
export interface CheckpointParts {
  readonly runId: string;
  /** `weights/NAME` or `sampler_weights/NAME`. */
  readonly checkpointId: string;
}

/** The argument of commands about one checkpoint. */
export const checkpointArguments = {
  path: {
    description: "tinker://RUN_ID/weights/NAME or tinker://RUN_ID/sampler_weights/NAME",
    values: ["checkpoints"],
  },
} as const satisfies ArgumentSpecs;

/** Checks a checkpoint's path before anything is asked of a server. */
export function parseCheckpointPath(path: string): CheckpointParts {
  const match = /^tinker:\/\/([^/]+)\/((?:sampler_)?weights\/[^/]+)$/.exec(path);
  if (match) return { runId: match[1]!, checkpointId: match[2]! };
  throw new CliError(
    `Invalid checkpoint path: ${JSON.stringify(path)}`,
    "Checkpoint paths look like tinker://RUN_ID/weights/NAME or tinker://RUN_ID/sampler_weights/NAME.",
  );
}
