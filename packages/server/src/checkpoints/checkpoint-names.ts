import { ArgumentError, CheckpointPath } from "tinker-ts/wire";
import { ApiError, badRequest } from "../errors/api-error.js";
import type { CheckpointRecord } from "../store/checkpoints-table.js";

const namePattern = /^[A-Za-z0-9_][\w.=+@,-]{0,127}$/;

/** Checks the name of a checkpoint; it becomes the last part of a path and nothing else. */
export function checkName(name: string): string {
  if (namePattern.test(name)) return name;
  throw badRequest(
    "path",
    `${JSON.stringify(name.slice(0, 140))} cannot name a checkpoint; use 1 to 128 letters, digits and _ . = + @ , - and begin with a letter, digit or _`,
  );
}

/** Parses a path of the API; a path of another form is a bad request. */
export function parsePath(tinkerPath: string): CheckpointPath {
  try {
    return CheckpointPath.parse(tinkerPath);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    throw new ApiError(400, error.message.replace(error.field, "path"), { cause: error });
  }
}

/** The path of a checkpoint. */
export function pathOf(checkpoint: Pick<CheckpointRecord, "runId" | "type" | "name">): string {
  return new CheckpointPath({
    trainingRunId: checkpoint.runId,
    checkpointType: checkpoint.type,
    name: checkpoint.name,
  }).tinkerPath;
}

/** The id of a checkpoint within its run: `weights/<name>` or `sampler_weights/<name>`. */
export function checkpointIdOf(checkpoint: Pick<CheckpointRecord, "type" | "name">): string {
  return `${checkpoint.type === "training" ? "weights" : "sampler_weights"}/${checkpoint.name}`;
}
