import { CliError } from "../errors/cli-error.js";

/** Refuses a folder that holds a run: one is gone on with only when that was asked for. */
export async function checkRunFolder(
  folder: string,
  chosen: { readonly resume: boolean; readonly dryRun: boolean },
): Promise<void> {
  if (chosen.resume || chosen.dryRun) return;
  const { readRunFolder } = await import("tinker-ts/run-log");
  const { attempts } = await readRunFolder(folder);
  if (attempts === 0) return;
  throw new CliError(
    `${folder} holds a run already.`,
    "Go on with it with --resume, or choose another folder with --output.",
  );
}
