import { existsSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { LoraAdapter } from "@tinker-ts/engine";
import type { CommandContext } from "../command.js";
import { CliError } from "../errors/cli-error.js";
import { formatSize } from "../output/formats.js";
import { parseCheckpointPath } from "../parse/checkpoint-path.js";
import { readAdapterConfig } from "./adapter-config.js";
import { findCheckpoint } from "./model-source.js";
import { orLocal } from "./or-local.js";
import { downloadCheckpoint } from "./download-checkpoint.js";
import { withService } from "./with-service.js";

/** An adapter, its folder, and the folder of the model that it belongs to. */
export interface LoadedAdapter {
  readonly adapter: LoraAdapter;
  readonly folder: string;
  readonly baseFolder: string;
}

/**
 * Reads an adapter from a PEFT folder, a checkpoint or the folder of a run, and hands it to `use`; a checkpoint's files are
 * removed afterwards. `base` names its model where that is not known.
 */
export async function withAdapter<T>(
  given: CommandContext,
  place: string,
  base: string | undefined,
  use: (loaded: LoadedAdapter) => Promise<T>,
): Promise<T> {
  const context = orLocal(given);
  const { cwd } = context.terminal;
  const folder = path.resolve(cwd, place);
  if (existsSync(path.join(folder, "adapter_config.json"))) {
    return use(await readFrom(context, folder, base));
  }
  const source = (await findCheckpoint(place, cwd)) ?? place;
  if (!source.startsWith("tinker://")) {
    throw new CliError(
      `${place} is neither a checkpoint path nor a folder of a run or of an adapter.`,
      "Give tinker://RUN_ID/weights/NAME, the folder of a run, or a folder with adapter_config.json.",
    );
  }
  parseCheckpointPath(source);
  const temporary = await mkdtemp(path.join(tmpdir(), "tinker-ts-checkpoint-"));
  try {
    const directory = path.join(temporary, "adapter");
    const baseModel = await withService(context, async (open) => {
      await downloadCheckpoint(context, open, source, { directory, overwrite: false });
      return base ?? (await open.rest.getWeightsInfoByTinkerPath(source, open.bounds)).baseModel;
    });
    return await use(await readFrom(context, directory, baseModel));
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function readFrom(
  context: CommandContext,
  folder: string,
  base: string | undefined,
): Promise<LoadedAdapter> {
  const { readAdapter, openModelFolder } = await import("@tinker-ts/engine");
  const named = base ?? (await readAdapterConfig(folder)).base;
  if (named === undefined) {
    throw new CliError("The adapter does not name its base model.", "Pass it with --base-model.");
  }
  const baseFolder = await findBase(context, named);
  const model = await openModelFolder(baseFolder, context.signal);
  try {
    const adapter = await readAdapter(folder, model, context.signal);
    return { adapter, folder, baseFolder };
  } finally {
    await model.close();
  }
}

/** Finds the files of a base model: a folder, the embedded one, or an id of the hub. */
async function findBase(
  { terminal, output, signal }: CommandContext,
  base: string,
): Promise<string> {
  const { findModel } = await import("@tinker-ts/engine");
  const folder = path.resolve(terminal.cwd, base);
  const progress = output.progress(`Fetching ${base}`);
  try {
    const found = await findModel((await isFolder(folder)) ? folder : base, {
      signal,
      env: terminal.env,
      onProgress: ({ bytes, totalBytes }) => progress.update(bytes, totalBytes, formatSize(bytes)),
    });
    return found.folder;
  } catch (cause) {
    signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(
      `Cannot load the base model ${base}: ${reason}`,
      "Pass its folder or its id on the hub with --base-model.",
      { cause },
    );
  } finally {
    progress.end();
  }
}

async function isFolder(location: string): Promise<boolean> {
  const found = await stat(location).catch(() => undefined);
  return found?.isDirectory() ?? false;
}
