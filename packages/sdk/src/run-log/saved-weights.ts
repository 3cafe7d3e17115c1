import { existsSync } from "node:fs";
import path from "node:path";
import { ArgumentError } from "../errors/argument-error.js";
import { readRunFolder, runFiles } from "./run-folder.js";

/** Which of the saved weights of a checkpoint. */
export type WeightsKind = "statePath" | "samplerPath";

/**
 * The path of saved weights: `tinker://...` as it is, and the last checkpoint in the folder of a run.
 * Throws `ArgumentError` for everything else.
 */
export async function savedWeights(
  given: string,
  field: string,
  kind: WeightsKind = "statePath",
): Promise<string> {
  if (typeof given === "string" && given.startsWith("tinker://")) return given;
  const found = await checkpointOfRun(given, kind);
  if (found !== undefined) return found;
  throw new ArgumentError(
    field,
    `${JSON.stringify(given)} must start with tinker:// or be the folder of a run`,
  );
}

/** The last checkpoint of a run's folder; undefined for a name, and for other folders. */
export async function checkpointOfRun(
  given: string,
  kind: WeightsKind,
): Promise<string | undefined> {
  if (typeof given !== "string" || given === "") return undefined;
  const folder = path.resolve(given);
  const has = (name: string): boolean => existsSync(path.join(folder, name));
  if (has("adapter_config.json")) {
    throw new ArgumentError(
      given,
      "is a folder with a PEFT adapter, which a server must import first; " +
        `run 'tinker-ts checkpoint import ${given}', and pass the path that it prints`,
    );
  }
  if (!has(runFiles.checkpoints) && !has(runFiles.metrics)) return undefined;
  const { checkpoints } = await readRunFolder(folder);
  const row = checkpoints.findLast((one) => one[kind] !== undefined);
  if (row) return row[kind];
  throw new ArgumentError(
    given,
    "is the folder of a run without a checkpoint; resume the run, or pass a base model or a checkpoint",
  );
}
