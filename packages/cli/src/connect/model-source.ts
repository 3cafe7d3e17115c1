import { existsSync } from "node:fs";
import path from "node:path";
import { CliError } from "../errors/cli-error.js";
import type { OptionValues } from "../parse/option-spec.js";
import { readSource, type Source, type sourceOptions } from "../parse/source-options.js";

/** The weights of a checkpoint that a command needs: for sampling, or for training. */
type WeightsKind = "samplerPath" | "statePath";

/** The model that the options name; the folder of a run means its last checkpoint. */
export async function findSource(
  options: OptionValues<typeof sourceOptions>,
  cwd: string,
  kind: WeightsKind = "samplerPath",
): Promise<Source> {
  const source = readSource(options);
  if ("modelPath" in source) return source;
  const modelPath = await checkpointOf(source.baseModel, cwd, kind);
  return modelPath === undefined ? source : { modelPath };
}

/** The path of a checkpoint to start training from; the folder of a run means its last checkpoint. */
export async function findCheckpoint(
  given: string | undefined,
  cwd: string,
): Promise<string | undefined> {
  if (given === undefined) return undefined;
  return (await checkpointOf(given, cwd, "statePath")) ?? given;
}

/** Refuses what is no base model: a checkpoint, the folder of a run, an adapter. */
export async function checkBaseModel(given: string, cwd: string): Promise<void> {
  const isCheckpoint = given.startsWith("tinker://");
  if (!isCheckpoint && (await checkpointOf(given, cwd, "statePath")) === undefined) return;
  throw new CliError(
    `--model: ${given} is ${isCheckpoint ? "a checkpoint" : "the folder of a run"}, not a base model.`,
    `Start from its weights with --load ${given}, and name its base model with --model.`,
  );
}

/** The last checkpoint of a run's folder; undefined for a name, and for other folders. */
async function checkpointOf(
  given: string,
  cwd: string,
  kind: WeightsKind,
): Promise<string | undefined> {
  if (given.startsWith("tinker://")) return undefined;
  const folder = path.resolve(cwd, given);
  if (!existsSync(folder)) return undefined;
  if (existsSync(path.join(folder, "adapter_config.json"))) {
    throw new CliError(
      `${given} is a folder with a PEFT adapter, which a server must import first.`,
      `Run 'tinker-ts checkpoint import ${given}', and pass the path that it prints.`,
    );
  }
  const { checkpointOfRun } = await import("tinker-ts/run-log");
  return checkpointOfRun(folder, kind);
}
